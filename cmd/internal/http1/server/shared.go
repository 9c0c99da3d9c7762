package server

import "context"

// Context is the context of a request, which a server of HTTP/2 uses too. It ends with End.
type Context = requestContext

// NewContext returns a context with the values of another one, but not its end.
func NewContext(values context.Context) *Context { return &requestContext{values: values} }

// End ends the context and those that package context has derived from it. It may call functions that lock: the caller holds no lock that
// these functions use.
func (c *requestContext) End() { c.end() }
