// Package deploy holds what is in the folder deploy to what it promises. The chart is rendered by
// Helm's own engine, each object is read strictly as Kubernetes' type, and the configuration in it
// by headgate check. Alerts are tried by promtool; every metric and label that alerts and dashboard
// name is one that a running headgate proxy shows.
package deploy
