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
	sideFloor    = "floor"
)

// sideBefore is the fast data plane of an earlier commit.
func sideBefore(commit string) string { return sideFast + ", " + commit }

// The values of proxy.data_plane.
const (
	standard = "standard"
	fast     = "fast"
)

// barP99 is the largest p99 latency of the fast data plane, beside that of the standard data plane, and that
// of the fast data plane before.
const barP99 = 1

// bar is the largest ratio that passes, on a machine with a processor of Intel, and of AMD. 0 is not judged.
type bar struct{ intel, amd float64 }

// comparison is a load, with the bars of the fast data plane.
type comparison struct {
	name, about string
	load        load
	settings    settings
	// nginx is the bar of the ratio to nginx, and before that of the ratio to an earlier commit.
	nginx  bar
	before float64
	// reported means that no ratio has a bar.
	reported bool
}

// comparisons returns the loads of most scenes.
func comparisons() []comparison {
	rule, encrypted := settings{Rules: 1}, settings{Rules: 1, TLS: true}
	return []comparison{
		{name: "proxy, 1 KiB", about: "one rule", settings: rule, nginx: bar{1.35, 1.15}, before: 0.62},
		{
			name: "proxy, refused", about: "the limit of the rule is used up", load: load{refused: true},
			settings: settings{Rules: 1, Refuse: true}, nginx: bar{1.25, 1.3},
		},
		{name: "proxy, TLS", about: "one rule; HTTP/1.1 over TLS", settings: encrypted, nginx: bar{1.25, 0}},
		{
			name: "proxy, HTTP/2", about: "one rule; HTTP/2 over TLS", load: load{http2: true},
			settings: encrypted, nginx: bar{1.9, 0}, before: 0.6,
		},
		{
			name: "proxy, new connections", about: "one rule; each request on a new connection",
			load: load{header: "Connection: close"}, settings: rule, nginx: bar{1.6, 1.4}, before: 0.7,
		},
		{name: "proxy, 100 KiB", about: "no rule; bodies of 100 KiB", load: load{path: pathLarge}, nginx: bar{0.6, 0.6}},
		{
			name: "proxy, 2,000 connections", about: "one rule; the service answers after 100 ms",
			load: load{path: pathSlow, connections: 2000, least: 3 * time.Second}, settings: rule, nginx: bar{1.35, 1.35},
		},
		{
			name: "proxy, gRPC", about: "one rule; unary calls over HTTP/2 without TLS, also to the service",
			load: load{grpc: true}, settings: settings{Rules: 1, GRPC: true}, reported: true,
		},
		// With more connections, the transfers that the end of a round cuts off would be a large part of its work.
		{name: "proxy, 10 MiB", about: "no rule; bodies of 10 MiB", load: load{path: pathHuge, connections: 4}, reported: true},
		{
			name: "proxy, request bodies", about: "one rule; requests with 4 KiB", load: load{script: "post.lua"},
			settings: rule, reported: true,
		},
	}
}

// Scenes returns all scenes. before is a commit that Headgate is also compared with, or "".
func Scenes(before string) []Scene {
	all := []Scene{bareScene(), featureScene()}
	for _, c := range comparisons() {
		all = append(all, c.scene(before))
		if !c.reported {
			all = append(all, c.atHalf().scene(before))
		}
	}
	return all
}

// atHalf is the same load at half of the rate that nginx reaches, without bars.
func (c comparison) atHalf() comparison {
	c.name += ", half rate"
	c.load.half, c.nginx, c.before, c.reported = true, bar{}, 0, true
	return c
}

// scene makes the sides and the questions. The standard data plane takes no part at half of nginx's rate,
// which may be more than it reaches.
func (c comparison) scene(before string) Scene {
	s := Scene{
		Name: c.name, Repeats: c.load.half && !c.load.http2 && c.load.header == "",
		about: c.about, load: c.load,
		sides: []side{
			{sideNginx, contest.Peer, nginx(), c.settings},
			{sideHAProxy, contest.Peer, haproxy(), c.settings},
			{sideFast, contest.Ours, headgate(), c.settings.with(fast)},
		},
		questions: []contest.Question{
			{Of: sideFast, Against: sideNginx, Bar: c.nginx.here()},
			{Of: sideFast, Against: sideHAProxy},
			{Of: sideHAProxy, Against: sideNginx},
			{Of: sideFast, Against: sideNginx, Meter: meterP99},
		},
	}
	p99 := float64(barP99)
	if c.reported {
		p99 = 0
	}
	if !c.load.half {
		s.sides = append(s.sides, side{sideStandard, contest.Ours, headgate(), c.settings.with(standard)})
		s.questions = append(s.questions,
			contest.Question{Of: sideStandard, Against: sideNginx},
			contest.Question{Of: sideFast, Against: sideStandard},
			contest.Question{Of: sideFast, Against: sideStandard, Meter: meterP99, Bar: p99})
	}
	if before != "" {
		s.sides = append(s.sides, side{sideBefore(before), contest.Ours, headgateBefore(), c.settings.with(fast)})
		s.questions = append(s.questions,
			contest.Question{Of: sideFast, Against: sideBefore(before), Bar: c.before},
			contest.Question{Of: sideFast, Against: sideBefore(before), Meter: meterP99, Bar: p99})
	}
	if !c.load.http2 && !c.load.grpc && c.load.script == "" { // The floor can serve the load.
		s.sides = append(s.sides, side{sideFloor, contest.Floor, floor(c.load.header != ""), c.settings})
		s.questions = append(s.questions,
			contest.Question{Of: sideFloor, Against: sideNginx},
			contest.Question{Of: sideFast, Against: sideFloor})
	}
	if c.load.size() > 1<<10 && !c.load.half {
		s.withBuffers()
	}
	return s
}

// withBuffers adds nginx with larger buffers, which save processor time for large bodies.
func (s *Scene) withBuffers() {
	const buffers = "nginx, 16 buffers of 16 KiB"
	s.sides = append(s.sides, side{buffers, contest.Peer, nginx(), settings{Buffers: true}})
	s.questions = append(s.questions,
		contest.Question{Of: buffers, Against: sideNginx},
		contest.Question{Of: sideFast, Against: buffers})
}

// with returns the settings with a data plane.
func (s settings) with(plane string) settings {
	s.Plane = plane
	return s
}
