// Package documents holds the documents to what is so. Each configuration of
// docs/rules.md and docs/cloud-armor.md is loaded, and the requests that stand
// below it are made, in a bubble of virtual time; what the document says of an
// answer is compared with the answer. The tables of docs/stores.md are worked out
// or measured, and its commands and rights tried, against real servers. Tests,
// metrics and lines of the log that documents name are there. The commands of README.md
// are run, and their output compared.
package documents
