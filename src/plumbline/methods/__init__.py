"""Methods: ask/tell policies, registered by name with a decorator.

Docstrings cite the documents by codes: CAL is Deshpande and Kuleshov (2021), CBO is Stanton, Maddox and Wilson (2023),
LOCBO is Kim et al. (2025), AABO is Maus et al. (2024), and BOWH are the slides of Paulson (2024).
"""
