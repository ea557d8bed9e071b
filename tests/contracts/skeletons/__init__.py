"""One part of each kind, to be copied: the contributor's page shows these files, a test holds them to the contracts."""
