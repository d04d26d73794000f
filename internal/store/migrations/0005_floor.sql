-- The first line of a migration may be "-- floor: N": releases that know the
-- schema up to N go on reading and writing after it. Without such a line those
-- that do not know the migration refuse the database. 0 stands for the version
-- itself.
ALTER TABLE schema_version ADD COLUMN floor ${int} NOT NULL DEFAULT 0;
