package proxy

import (
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// The sides of most scenes.
const (
	sideNginx    = "nginx"
	sideHAProxy  = "HAProxy"
	sideStandard = "headgate, standard"
	sideFast     = "headgate, fast"
)

// The values of proxy.data_plane.
const (
	standard = "standard"
	fast     = "fast"
)

// Scenes returns all scenes.
func Scenes() []Scene {
	rule := settings{Rules: 1}
	return []Scene{
		bareScene(),
		judged("proxy, 1 KiB", "one rule", load{}, rule, 1.3),
		judged("proxy, refused", "the limit of the rule is used up", load{refused: true}, settings{Rules: 1, Refuse: true}, 1.4),
		withBuffers(judged("proxy, 100 KiB", "no rule; bodies of 100 KiB", load{path: pathLarge}, settings{}, 0.6)),
		judged("proxy, new connections", "one rule; each request on a new connection", load{header: "Connection: close"}, rule, 1.4),
		judged("proxy, 2,000 connections", "one rule; the service answers after 100 ms",
			load{path: pathSlow, connections: 2000, least: 3 * time.Second}, rule, 1.4),
		featureScene(),
		reported("proxy, TLS", "one rule; HTTP/1.1 over TLS", load{}, settings{Rules: 1, TLS: true}),
		reported("proxy, HTTP/2", "one rule; HTTP/2 over TLS", load{http2: true}, settings{Rules: 1, TLS: true}),
		// With more connections, the transfers that the end of a round cuts off would be a large part of its work.
		withBuffers(reported("proxy, 10 MiB", "no rule; bodies of 10 MiB", load{path: pathHuge, connections: 4}, settings{})),
		reported("proxy, request bodies", "one rule; requests with 4 KiB", load{script: "post.lua"}, rule),
	}
}

// judged compares the proxies. bar is the largest ratio of Headgate's fast data plane to
// nginx that passes. Its p99 latency must not be above that of the standard data plane.
func judged(name, about string, l load, s settings, bar float64) Scene {
	const barP99 = 1
	return Scene{
		Name: name, about: about, load: l, sides: proxies(s),
		questions: []contest.Question{
			{Of: sideFast, Against: sideNginx, Bar: bar},
			{Of: sideStandard, Against: sideNginx},
			{Of: sideHAProxy, Against: sideNginx},
			{Of: sideFast, Against: sideStandard},
			{Of: sideFast, Against: sideStandard, Meter: meterP99, Bar: barP99},
			{Of: sideFast, Against: sideNginx, Meter: meterP99},
		},
	}
}

// reported is judged without bars.
func reported(name, about string, l load, s settings) Scene {
	scene := judged(name, about, l, s, 0)
	for i := range scene.questions {
		scene.questions[i].Bar = 0
	}
	return scene
}

// withBuffers adds nginx with larger buffers, which save processor time for large bodies.
func withBuffers(s Scene) Scene {
	const buffers = "nginx, 16 buffers of 16 KiB"
	s.sides = append(s.sides, side{buffers, contest.Peer, nginx(), settings{Buffers: true}})
	s.questions = append(s.questions,
		contest.Question{Of: buffers, Against: sideNginx},
		contest.Question{Of: sideFast, Against: buffers})
	return s
}

// proxies returns the sides of most scenes.
func proxies(s settings) []side {
	return []side{
		{sideNginx, contest.Peer, nginx(), s},
		{sideHAProxy, contest.Peer, haproxy(), s},
		{sideStandard, contest.Ours, headgate(), s.with(standard)},
		{sideFast, contest.Ours, headgate(), s.with(fast)},
	}
}

// with returns the settings with a data plane.
func (s settings) with(plane string) settings {
	s.Plane = plane
	return s
}

// featureScene compares features of Headgate with one rule alone.
func featureScene() Scene {
	const (
		one, ten, other    = "fast, one rule", "fast, ten rules", "fast, one rule of ten matches"
		shares, log        = "fast, fair share", "fast, JSON log"
		nginxOne, nginxLog = "nginx, one rule", "nginx, JSON log"
		barRules, barLog   = 1.15, 1.3
	)
	ours := func(name string, s settings) side { return side{name, contest.Ours, headgate(), s.with(fast)} }
	return Scene{
		Name: "proxy, features", about: "each feature beyond one rule",
		sides: []side{
			ours(one, settings{Rules: 1}),
			ours(ten, settings{Rules: 10}),
			ours(other, settings{Rules: 1, OtherRules: 9}),
			ours(shares, settings{FairShare: true}),
			ours(log, settings{Rules: 1, Log: true}),
			{nginxOne, contest.Peer, nginx(), settings{Rules: 1}},
			{nginxLog, contest.Peer, nginx(), settings{Rules: 1, Log: true}},
		},
		questions: []contest.Question{
			{Of: ten, Against: one, Bar: barRules},
			{Of: other, Against: one, Bar: barRules},
			{Of: shares, Against: one, Bar: barRules},
			{Of: log, Against: one, Bar: barLog},
			{Of: nginxLog, Against: nginxOne},
		},
	}
}

// bareScene compares the standard data plane with the ReverseProxy that it contains.
func bareScene() Scene {
	const (
		bare, unpooled = "bare ReverseProxy", "bare ReverseProxy, without BufferPool"
		one, none      = "headgate proxy, one rule", "headgate proxy, no rule"
		bar            = 1.08
	)
	return Scene{
		Name: "proxy", about: "bodies of 1 KiB",
		sides: []side{
			{bare, contest.Peer, bareProxy(true), settings{}},
			{unpooled, contest.Peer, bareProxy(false), settings{}},
			{one, contest.Ours, headgate(), settings{Rules: 1}.with(standard)},
			{none, contest.Ours, headgate(), settings{}.with(standard)},
		},
		questions: []contest.Question{
			{Of: unpooled, Against: bare},
			{Of: one, Against: bare, Bar: bar},
			{Of: none, Against: bare},
		},
	}
}
