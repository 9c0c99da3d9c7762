// Package access says who the clients of a listener are, and what each of them may do.
//
// A Control has the callers of a configuration. Each listener has a Gate, which finds the caller of a
// token or of a client certificate. What the Gate gives, a Client, answers for scopes, domains, rules
// and the caller's limit. A connection that outlives a call is a Session: it ends when its token
// ends, or is removed by a reload.
package access
