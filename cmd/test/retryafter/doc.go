// Package retryafter compares what the fronts say about the time after which a refused request can pass.
package retryafter
