// Package documents tests the documents. It loads each configuration of docs/rules.md and
// docs/cloud-armor.md and makes the requests below it, in a bubble of virtual time. The
// answers must be those of the document.
//
// Other tests compute or measure the tables of docs/stores.md, and try its commands and rights
// against real servers. They also check that the tests, metrics and log lines that documents
// name exist. The commands of README.md are run, and their output is compared.
package documents
