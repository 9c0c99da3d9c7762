// Package documents runs the examples of the documents: each configuration of
// docs/rules.md and docs/cloud-armor.md is loaded, and the requests that stand
// below it are made, in a bubble of virtual time. What the document says of an
// answer is compared with the answer.
package documents
