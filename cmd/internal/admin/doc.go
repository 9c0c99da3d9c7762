// Package admin has the JSON documents that the admin listener of an instance serves.
// The rooms of the features write them, and cmd/internal/ctl and other programs read them. Fields may be
// added, but never renamed or moved.
package admin
