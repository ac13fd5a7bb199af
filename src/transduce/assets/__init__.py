"""Files that come with the package: the built-in corpora, each in a folder with its licence."""
