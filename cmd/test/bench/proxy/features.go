package proxy

import "github.com/headgate/headgate/cmd/test/bench/contest"

// featureScene compares features of Headgate with one rule alone.
func featureScene() Scene {
	const (
		one, ten, other    = "fast, one rule", "fast, ten rules", "fast, one rule of ten matches"
		shares, log        = "fast, fair share", "fast, JSON log"
		all                = "fast, ten rules, fair share, JSON log"
		nginxOne, nginxLog = "nginx, one rule", "nginx, JSON log"
		barRules, barLog   = 1.15, 1.3
		barAll             = 1.5
	)
	ours := func(name string, s settings) side { return side{name, contest.Ours, headgate(), s.with(fast)} }
	return Scene{
		Name: "proxy, features", about: "each feature beyond one rule; request ids, RateLimit fields and metrics are always on",
		sides: []side{
			ours(one, settings{Rules: 1}),
			ours(ten, settings{Rules: 10}),
			ours(other, settings{Rules: 1, OtherRules: 9}),
			ours(shares, settings{FairShare: true}),
			ours(log, settings{Rules: 1, Log: true}),
			ours(all, settings{Rules: 10, FairShare: true, Log: true}),
			{nginxOne, contest.Peer, nginx(), settings{Rules: 1}},
			{nginxLog, contest.Peer, nginx(), settings{Rules: 1, Log: true}},
		},
		questions: []contest.Question{
			{Of: ten, Against: one, Bar: barRules},
			{Of: other, Against: one, Bar: barRules},
			{Of: shares, Against: one, Bar: barRules},
			{Of: log, Against: one, Bar: barLog},
			{Of: all, Against: one, Bar: barAll},
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
