// Package client asks headgate server for decisions.
//
// Calls of one program share a stream: those that come while two messages are on their way travel
// together in the next one. A lone call is sent at once. So the server spends a fraction of the
// processor time that a gRPC call for each decision would take.
//
// A decision counts at most once. What a server may have read is never sent again: if its answer does
// not come, the fallback decides. When a caller leaves before the answer, what the answer took is
// given back. Several servers must share a store, because any of them may be asked.
package client
