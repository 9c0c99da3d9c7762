package config

import (
	"log/slog"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// config reads the whole file into c.
func (r *reader) config(c *Config) {
	root := r.section(value{node: r.root}, "write each field as name: value, with a space after the colon")
	if root.self.node == nil {
		return
	}
	root.settable, root.outline = true, r.outline
	root.version()
	root.store(c)
	root.duration(root.declare("shutdown_timeout", field.Taken, "Longest wait for requests in flight when the process stops."),
		&c.ShutdownTimeout, 0, 10*time.Minute)
	root.log(&c.Log)
	root.instanceName(c)
	root.identity(&c.Identity)
	r.checkLogIdentity(c)
	oneOf(root, root.declare("evaluate", field.Taken, "all_or_nothing: when one rule refuses, no other matching rule counts the request; "+
		"independent: each rule counts on its own."), &c.Independent, []choice[bool]{
		{word: "all_or_nothing", value: false}, {word: "independent", value: true},
	})
	root.duration(root.declare("retry_after_max", field.Taken, "Longest Retry-After of a refusal, 1s to 2147483s. With a longer one, "+
		"clients on Node.js retry at once. RateLimit and the text of the refusal keep the exact time."),
		&c.RetryAfterMax, time.Second, guard.MostRetryAfter)
	root.boolean(root.declare("x_should_retry", field.Taken, "true adds X-Should-Retry: false to refusals that last more than 60s: some "+
		"clients, such as those of OpenAI and Anthropic, then do not retry."), &c.XShouldRetry)
	root.paths(&c.Folds)
	root.envoyFiles(&c.EnvoyCalendarMonths)
	root.sourceOfObjects(c)
	root.domains(c)
	root.exempt(c)
	root.prices()
	root.rules(c)
	root.checkPrices()
	root.quotas(c)
	root.fairShare(c)
	root.throttle(c)
	root.mode(c)
	if c.Throttle != nil {
		r.noteAll(check.Throttle(c.Throttle, c.Rules, r.identityFacts(c), r.blamed))
	}
	root.metering(c)
	root.proxy(&c.Proxy)
	root.cors(c)
	root.checkProxyHeaders(c)
	if c.Proxy.Upstream != nil {
		r.noteAll(check.Supply(check.ProxyContext{
			Rules: c.Rules, Share: c.FairShare, Throttle: c.Throttle,
			Certificates: c.Proxy.TLS.ClientCA != "" || r.blamed("proxy.tls"),
		}, r.blamed))
	}
	root.server(c)
	root.checkCORS(c)
	root.leases(c)
	root.admin(&c.Admin)
	root.checkListeners()
	root.checkAuth(c)
	r.proxyOnly = root.unusedByPrograms()
	root.end()
}

// exempt reads the requests that nothing decides.
func (s *section) exempt(c *Config) {
	s.refuseTable("exempt")
	s.declare("exempt", field.Taken, "Requests that nothing decides: neither rules, nor fair share, nor the throttle. They are not "+
		"counted, and not "+
		"logged as decisions. A list of entries with the fields of match; any of them exempts a request.")
	s.exemptMatches(&c.Exempt, withoutBodies)
	if len(c.Exempt) > 0 {
		s.noteAll(check.Exempt(c.Exempt, s.blamed))
	}
}

// version reads the version of the format, so that a later version can change the meaning of fields.
func (s *section) version() {
	s.required("version", "write version: 1 on the first line")
	s.outline.field(s.declare("version", field.Taken, "Version of the format.")).numbers(nil, []int{1})
	if v, ok := s.get("version"); ok {
		var version int64
		s.wholeNumber(v, &version, 1, 1)
	}
}

// paths reads which differences between paths the service ignores.
func (s *section) paths(f *rule.Folds) {
	paths := s.sub(s.declare("paths", field.Taken, "Differences between paths that the service ignores. Rules treat such paths "+
		"as one path; the service gets the path as sent."), "{ignore_case: true}")
	paths.boolean(paths.declare("ignore_case", field.Taken, "true treats /V1/Product like /v1/product."), &f.Case)
	paths.boolean(paths.declare("ignore_trailing_slash", field.Taken, "true treats /v1/product/ like /v1/product."),
		&f.TrailingSlash)
	paths.boolean(paths.declare("ignore_parameters", field.Taken, "true treats /v1/product;x=1 like /v1/product."), &f.Parameters)
	paths.end()
}

// envoyFiles reads how files of envoyproxy/ratelimit are understood.
func (s *section) envoyFiles(calendarMonths *bool) {
	envoy := s.sub(s.declare("envoy", field.Restart, "How headgate server understands files of envoyproxy/ratelimit."), "{month: calendar}")
	oneOf(envoy, envoy.declare("month", field.Restart, "Length of a month in these files: 30d, or calendar for the months of the calendar "+
		"in UTC. A file may have a month of its own."), calendarMonths, envoyMonths())
	envoy.end()
}

// envoyMonths are the lengths of a month in files of envoyproxy/ratelimit.
func envoyMonths() []choice[bool] {
	return []choice[bool]{{word: "30d", value: false}, {word: "calendar", value: true}}
}

// log reads the section log.
func (s *section) log(l *Log) {
	log := s.sub(s.declare("log", field.Taken, "Settings of the logs."), "{level: info, decisions: sampled}")
	oneOf(log, log.declare("level", field.Taken, "Lowest level that is logged."), &l.Level, []choice[slog.Level]{
		{word: "debug", value: slog.LevelDebug},
		{word: "info", value: slog.LevelInfo},
		{word: "warn", value: slog.LevelWarn},
		{word: "error", value: slog.LevelError},
	})
	oneOf(log, log.declare("format", field.Restart, "Form of the log's lines; auto writes text to a terminal, and JSON elsewhere."),
		&l.Format, []choice[LogFormat]{
			{word: string(LogAuto), value: LogAuto}, {word: string(LogJSON), value: LogJSON}, {word: string(LogText), value: LogText},
		})
	oneOf(log, log.declare("decisions", field.Taken, "Which decisions are logged; sampled logs a bounded number a second, refusals "+
		"first."), &l.Decisions, []choice[LogDecisions]{
		{word: "sampled", value: LogSampled}, {word: "all", value: LogAll}, {word: "none", value: LogNone},
	})
	oneOf(log, log.declare("keys", field.Taken, "How logs and ctl top show keys: by_reader shows a keyed hash of each value in "+
		"logs, and the values themselves in ctl top to callers with the scope administer; hash always hashes, plain the values, off no "+
		"key."),
		&l.Keys, []choice[LogKeys]{
			{word: string(KeysByReader), value: KeysByReader},
			{word: string(KeysHash), value: KeysHash},
			{word: string(KeysPlain), value: KeysPlain},
			{word: string(KeysOff), value: KeysOff},
		})
	log.file(log.declare("keys_secret_file", field.Taken, "File with the secret of the hashes of log.keys, so that several "+
		"instances show a "+
		"key in the same way. Without it, each start makes a random secret."), &l.KeysSecretFile)
	oneOf(log, log.declare("access", field.Taken, "Format of the access log."), &l.Access, []choice[AccessFormat]{
		{word: string(AccessOff), value: AccessOff},
		{word: string(AccessJSON), value: AccessJSON},
		{word: string(AccessCombined), value: AccessCombined},
	})
	log.file(log.declare("access_file", field.Taken, "File of the access log. Default: standard output. A reload opens the file "+
		"again."), &l.AccessFile)
	log.identityParts(l)
	log.end()
	if v, ok := log.given("access_file"); ok && l.Access == AccessOff && !log.blamedAny("access", "access_file") {
		s.fault(v, "has no effect without an access log", "set log.access to json or combined")
	}
	if v, ok := log.given("keys_secret_file"); ok && l.Keys != KeysHash && l.Keys != KeysByReader && !log.blamedAny("keys",
		"keys_secret_file") {
		s.fault(v, "has no effect with keys "+string(l.Keys), "remove it, or write keys: by_reader")
	}
}
