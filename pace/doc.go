// Package pace keeps outgoing calls within the provider's limit, over many instances
// and without a central store on their way.
package pace
