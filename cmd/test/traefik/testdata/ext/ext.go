// Package ext takes the place of a module that Traefik's go.mod replaces by a folder. The zip of Traefik's module
// lacks the folder, because a module ends where another one begins. Traefik embeds both types; neither has a field.
package ext

// HTTP extends the configuration of HTTP.
type HTTP struct{}

// Router extends the configuration of a router.
type Router struct{}
