"""What is optimised: BoTorch test problems, always to be maximised, entered by name with one decorator."""
