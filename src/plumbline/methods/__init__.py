"""Ask/tell policies, entered by name with one decorator."""
