// Package deploy tests the files of the folder deploy. Helm's engine renders the chart, each object
// is parsed strictly as its Kubernetes type, and headgate check checks the configuration. promtool
// tests the alerts. Alerts and dashboard may only use metrics and labels of a running headgate
// proxy.
package deploy
