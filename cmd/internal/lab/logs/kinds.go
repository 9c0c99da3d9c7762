package logs

// Moment is the moment of a request that a log has as its arrival.
type Moment uint8

const (
	// Unknown is a time whose moment the format does not say.
	Unknown Moment = iota
	// FirstByte is the first byte of the request.
	FirstByte
	// EndOfLine is the end of the request line.
	EndOfLine
	// EndOfHead is the end of the request's head, at which a limiter decides.
	EndOfHead
	// Decision is the time of the decision itself.
	Decision
)

var momentNames = [...]string{
	"the time of the line", "the first byte of the request", "the end of the request line", "the end of the request's head",
	"the decision",
}

// String names the moment for people.
func (m Moment) String() string { return momentNames[m] }

// Kind is what a preset knows of the logs of a server.
type Kind struct {
	// Name is the word of --format.
	Name string
	// Moment is what arrivals are, and Formula how they are made of the values on a line.
	Moment  Moment
	Formula string
	// Hides says what these logs do not tell, a sentence for each.
	Hides []string
}

const (
	abortsHidden = "A request that its client aborted can have the status 200, and ends when the service has answered."
	pipelined    = "A request that was sent before the answer to the one before it is late by the rest of that answer."
	resetsHidden = "A stream of HTTP/2 that the client reset early may have no line, so the log understates floods."
	slowHead     = "A head that arrives slowly makes the arrival too early: a limiter decides when the head is complete."
	momentUnsaid = "The format does not say whether its time is the arrival (Apache, Varnish, Go) or the end of the answer (nginx, " +
		"morgan, gunicorn)."
	failedHeads = "Connections that sent no complete head have no line."
)

// kindID is the place of a kind in kindsTable.
type kindID uint8

const (
	kindHeadgate kindID = iota
	kindNginx
	kindHAProxy
	kindApache
	kindEnvoy
	kindCaddy
	kindTraefik
	kindVarnish
	kindSquid
	kindLighttpd
	kindCombined
	kindCommon
	kindJSON
)

// kindsTable has the presets.
var kindsTable = [...]Kind{
	kindHeadgate: {"headgate", Decision, "decided_at where a line has it, else time", nil},
	kindNginx: {"nginx", FirstByte, "$msec - $request_time", []string{
		slowHead,
		"With mirror, $request_time includes the mirrored request, and the next request of the connection seems late.",
		"With buffer= and without flush=, lines wait in memory without a bound, and reach the file out of order.",
		"Its combined format has the end of the answer, in whole seconds.",
	}},
	kindHAProxy: {"haproxy", EndOfHead, "%tr + %TR", []string{
		abortsHidden + " With option abortonclose, it ends at the abort.",
		pipelined,
		"%t is the time of the connection, and no arrival of a request: use %tr, as option httplog does.",
		"%tr has no time zone: the times are taken as UTC.",
	}},
	kindApache: {"apache", EndOfLine, "%{begin:usec}t, or %t in whole seconds", []string{
		abortsHidden, slowHead, pipelined, resetsHidden,
	}},
	kindEnvoy: {"envoy", FirstByte, "%START_TIME%", []string{
		"The documents of Envoy do not say at which byte of the head %START_TIME% is.",
		"The default format has no address of the client: log %DOWNSTREAM_REMOTE_ADDRESS%.",
	}},
	kindCaddy: {"caddy", EndOfHead, "ts - duration", []string{
		"A request for a host that no site serves has no line.", failedHeads, pipelined,
		"Values of Cookie and Authorization are REDACTED without log_credentials.",
	}},
	kindTraefik: {"traefik", EndOfHead, "StartUTC, or the time of a line in whole seconds", []string{
		"The documents of Traefik do not say at which byte of the head a request starts: a Go server has it after the head.",
		"With bufferingSize, lines wait in memory, and reach the file out of order.", failedHeads,
	}},
	kindVarnish: {
		"varnish", EndOfHead, "%{VSL:Timestamp:Req[1]}x, else %{VSL:Timestamp:Start[1]}x, else %t in whole seconds",
		[]string{
			abortsHidden, pipelined,
			"A restarted request has the time of its restart.",
			"Lines of one session of HTTP/2 come together, out of order.",
		},
	},
	kindSquid: {"squid", EndOfHead, "the time - the elapsed milliseconds", []string{
		pipelined, "The query of a URL is left out, unless strip_query_terms is off.",
	}},
	kindLighttpd: {"lighttpd", FirstByte, "%{begin:usec}t", []string{
		abortsHidden, slowHead, resetsHidden, failedHeads,
		"The first request of a connection has the time at which the connection was accepted.",
		"%t is the second of a clock that lags: up to a second before the arrival.",
	}},
	kindCombined: {"combined", Unknown, "the time of the line, in whole seconds", []string{
		momentUnsaid,
		"It has no durations, no host, and no header but Referer and User-Agent.",
	}},
	kindCommon: {"common", Unknown, "the time of the line, in whole seconds", []string{
		momentUnsaid, "It has no durations, no host and no header.",
	}},
	kindJSON: {"json", Unknown, "the field that --field time names", []string{
		"The fields do not say whether the time is the arrival or the end of the answer: set --time-is.",
	}},
}

// Kinds lists the formats.
func Kinds() []*Kind {
	all := make([]*Kind, len(kindsTable))
	for i := range kindsTable {
		all[i] = &kindsTable[i]
	}
	return all
}
