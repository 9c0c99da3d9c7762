package proxy

import "strings"

// describesClient reports whether a field is one in which a gateway describes the request of its client to the service:
// the client's address, the scheme, host, port, prefix, target or method of the first request, or the client's
// certificate. Services and their frameworks believe such a field, so it may come only from a trusted peer. The name is in
// canonical spelling. docs/rules.md lists the names with their readers.
func describesClient(name string) bool {
	switch name {
	case "X-Real-Ip", "X-Real-Port", "X-Client-Ip", "Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip",
		"Cf-Connecting-Ipv6", "Cf-Pseudo-Ipv4", "Fastly-Client-Ip", "Fly-Client-Ip", "X-Envoy-External-Address", "X-Envoy-Internal",
		"X-Appengine-User-Ip", "X-Azure-Clientip", "X-Azure-Socketip", "X-Remote-Ip", "X-Remote-Addr", "X-Originating-Ip",
		"Proxy-Client-Ip", "Wl-Proxy-Client-Ip", "Forwarded-For", "X-Forwarded":
		return true
	case "X-Original-Url", "X-Original-Uri", "X-Original-Path", "X-Original-Method", "X-Original-Host", "X-Original-Port",
		"X-Original-Proto", "X-Original-Scheme", "X-Original-Prefix", "X-Original-For", "X-Original-Forwarded-For",
		"X-Original-Remote-Addr", "X-Rewrite-Url", "X-Envoy-Original-Path", "X-Envoy-Original-Host", "X-Host", "X-Script-Name",
		"Script-Name", "Path-Info":
		return true
	case "X-Scheme", "X-Url-Scheme", "Front-End-Https", "X-Proxied-Https", "X-Arr-Ssl", "Wl-Proxy-Ssl":
		return true
	case "Client-Cert", "Client-Cert-Chain", "X-Client-Cert", "X-Ssl-Cert", "X-Arr-Clientcert", "Proxy-Ssl-Id", "Proxy-Auth-Cert":
		return true
	case "X-Sendfile-Type", "X-Accel-Mapping": // With them, Rack lets the gateway send a file of its own.
		return true
	case "Proxy": // Under CGI, it becomes HTTP_PROXY, which HTTP clients take for their proxy.
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Ssl-Client-") || strings.HasPrefix(name, "Ssl-Client-") ||
		strings.HasPrefix(name, "X-Amzn-Mtls-")
}
