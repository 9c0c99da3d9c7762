// Package admin has the documents that the admin listener of an instance answers with, as
// JSON: internal/app writes them, internal/ctl reads them. Programs read them too: fields
// are added, and none is renamed or moved.
package admin
