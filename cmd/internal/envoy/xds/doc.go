// Package xds receives rate limit configurations from an xDS management server, such as the
// control plane of a gateway. A new configuration takes effect in all running instances.
//
//	source, err := xds.New(xds.Config{Server: "gateway:18001", NodeID: "headgate"})
//	...
//	err = source.Follow(ctx, apply, func(err error) { logger.Warn("configuration", "error", err) })
//
// The server needs the method StreamAggregatedResources of the aggregated discovery service
// (version 3, state of the world) and resources of type [TypeURL]. The source subscribes to
// all resources of this type.
//
// # How a configuration takes effect
//
// Each response of the server has all resources. Follow converts the resources and passes them to
// apply, sorted by name. If apply returns nil, Follow acknowledges the response. If the resources
// equal those that apply accepted last, Follow acknowledges them without a call of apply.
//
// # When a configuration is refused
//
// A configuration is refused when apply returns an error, when a resource is malformed, or when two
// resources have the same name. The last good configuration stays in force. The server gets the
// cause, cut to 1 KiB, and the caller gets a [RefusedError]. A server may send a refused
// configuration again at once. Follow then waits 1 s, 2 s, 4 s, and then 5 s each before it calls
// apply again and answers. Such a server gets at most 10 messages in 30 s. Many servers send no
// other configuration before this answer, so a corrected one may arrive up to 5 s late.
//
// # When the server is unreachable
//
// The last good configuration stays in force. Follow opens the stream again after 0.5 s. The
// pause grows to at most 1.5 s, and each pause is shortened by up to a fifth, so that instances do
// not retry together. Each attempt makes a new connection, resolves the server's name and reads the
// certificate files. The new stream names no version. So a server that returns with other
// resources under the same version sends them. Pings find a silent server within 40 s. A server
// that refuses the pings gets fewer of them.
//
// # Security
//
// The server is not trusted with memory or time. A response has at most MaxMessageBytes, 100,000
// resources, a million messages within the resources, and 100 levels. Follow reads 10 responses a
// second and reports at most 10 faults in 10 s. Texts of the server in errors are quoted and cut.
package xds
