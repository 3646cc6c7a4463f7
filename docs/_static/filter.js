// Rows of tables that do not hold all words of the filter are hidden, and sections without any other row with them.
for (const input of document.querySelectorAll("input.filter")) {
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const section of document.querySelectorAll("article section section")) {
      const rows = [...section.querySelectorAll("tbody tr")];
      const heading = section.firstElementChild.textContent;
      for (const row of rows) {
        const text = `${heading} ${row.textContent}`.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      section.hidden = rows.length > 0 && rows.every((row) => row.hidden);
    }
  });
}
