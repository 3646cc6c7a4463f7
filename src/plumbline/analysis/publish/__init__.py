"""The report, the reference results and the pages made of them."""
