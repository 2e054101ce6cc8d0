"""Results on record: pictures, claims and provenance beside a study (`files`), and their `page`."""
