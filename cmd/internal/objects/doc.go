// Package objects keeps what a source outside the file has in force: Table applies changes and holds faulty ones back,
// Cache keeps the objects in a local file, and Follower joins both to a source.
package objects
