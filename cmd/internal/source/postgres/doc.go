// Package postgres keeps rules, plans and customers in a table of PostgreSQL 13 or newer, one row each.
//
// Schema gives the SQL of the tables, and Source.Init runs it. Triggers log each change of the table in the same
// transaction, so that changes by plain SQL are seen too. A Source reads the log when it is notified, and every
// Config.Poll.
//
// Transactions may commit in another order than they began. So a Source keeps the snapshot of its last read, and reads
// the log of all transactions that this snapshot does not show. Each transaction is one change. Transactions between two
// reads that have changed the same object are one change together: the table has only the last version of the object.
package postgres
