package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/store/memory"
)

// collector builds the metrics from the report and the store at the time of a scrape.
type collector struct {
	config Config
	// library omits the metrics that only headgate proxy has: its build and its traffic.
	library bool

	build, decisions, unmatched, seconds     *prometheus.Desc
	requests, failures, inFlight, waiting    *prometheus.Desc
	requestsByPath, answers                  *prometheus.Desc
	serviceSeconds, requestSeconds           *prometheus.Desc
	places, placesUsed, blocks, blocksUsed   *prometheus.Desc
	storeEvicted, storeRefused, ruleSettings *prometheus.Desc
	reloads, reloadGood, reloadTime          *prometheus.Desc
	connections, connectionBound, accepted   *prometheus.Desc
	closedForMemory                          *prometheus.Desc
	acceptPauses, linesDropped, expires      *prometheus.Desc
	fallbacks, abandoned, clockErrors        *prometheus.Desc
	shared                                   *sharedMetrics
	shares                                   *shareMetrics
	throttle                                 *throttleMetrics
	modes                                    *modeMetrics
	outcomes                                 *outcomeMetrics
	tokens                                   *tokenMetrics
	server                                   *serverMetrics
	refused, sessions                        *prometheus.Desc
	quota                                    *quotaMetrics
	metering                                 *meteringMetrics
	leases                                   *leaseMetrics
}

func newCollector(c Config) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_"+name, help, labels, nil)
	}
	return &collector{
		config: c,
		shared: newSharedMetrics(desc),
		shares: newShareMetrics(desc), throttle: newThrottleMetrics(desc), modes: newModeMetrics(desc), outcomes: newOutcomeMetrics(desc),
		server: newServerMetrics(desc), quota: newQuotaMetrics(desc), metering: newMeteringMetrics(desc),
		leases: newLeaseMetrics(desc), tokens: newTokenMetrics(desc),
		refused: desc("refused_clients_total",
			"Calls, requests and commands of clients without valid credentials, without the right, or above server.limits.",
			"listener", "reason"),
		sessions: desc("caller_sessions", "Open streams and connections of callers with credentials."),
		build:    desc("build_info", "The running build. The value is always 1.", "version", "commit", "goversion"),
		decisions: desc("decisions_total",
			"Decisions. A request counts once for each rule that matches it.", "rule", "mode", "verdict", "reason"),
		fallbacks: desc("fallbacks_total",
			"Decisions by a fallback because the store did not answer.", "rule", "fallback"),
		abandoned: desc("abandoned_requests_total", "Requests canceled by the caller before the store answered."),
		clockErrors: desc("store_clock_errors_total",
			"Requests whose limits with a calendar period were decided by fallbacks, because the store's clock is outside their windows."),
		unmatched: desc("unmatched_requests_total", "Requests that matched no rule."),
		seconds:   desc("decision_seconds", "Duration of decisions, for all rules together."),
		requests: desc("proxy_requests_total",
			"Requests to the proxy, by the class of the response status. Code canceled means that the client left first.", "code"),
		answers: desc("proxy_answers_total",
			"Requests to the proxy, by the side that the answer comes from. service_failed: the service did not answer, or broke off.",
			"origin", "code"),
		serviceSeconds: desc("upstream_seconds", "Time from forwarding a request to the first byte of the upstream's answer."),
		requestSeconds: desc("proxy_request_seconds", "Time from the header of a request to the end of its answer."),
		requestsByPath: desc("proxy_requests_by_path_total",
			"Requests to the proxy, by the HTTP server that served them: path fast, or path standard with the reason.", "path", "reason"),
		failures:        desc("upstream_errors_total", "Requests that the upstream failed to answer.", "kind"),
		inFlight:        desc("proxy_in_flight", "Requests that the proxy is serving now."),
		waiting:         desc("waiting", "Requests that are waiting for their departure now."),
		reloads:         desc("config_reloads_total", "Reloads of the configuration after the start.", "result"),
		reloadGood:      desc("config_last_reload_successful", "1 if the last reload of the configuration succeeded, otherwise 0."),
		reloadTime:      desc("config_last_reload_success_timestamp_seconds", "Time at which a configuration last took effect."),
		places:          desc("store_places", "Capacity of the store in memory. One place has the state of one key and limit."),
		placesUsed:      desc("store_places_used", "Places that were ever used. A place is free again when its state has expired."),
		blocks:          desc("store_block_bytes", "Memory for the states of sliding_log and sliding_window."),
		blocksUsed:      desc("store_block_used_bytes", "Used part of headgate_store_block_bytes."),
		connections:     desc("proxy_connections", "Open client connections."),
		connectionBound: desc("proxy_connections_max", "Maximum number of open client connections. 0 means no limit."),
		closedForMemory: desc("proxy_connections_closed_for_memory_total",
			"Client connections that were closed because memory was near its bound."),
		accepted:     desc("proxy_connections_accepted_total", "Accepted client connections."),
		acceptPauses: desc("proxy_accept_pauses_total", "Pauses in accepting connections because the maximum was reached."),
		linesDropped: desc("access_log_dropped_total", "Access log lines dropped because the queue was full."),
		expires:      desc("certificate_expiry_timestamp_seconds", "Time at which the served certificate expires."),

		storeEvicted: desc("store_evicted_total", "States evicted for a new key before they had expired."),
		storeRefused: desc("store_refused_total", "Decisions on new keys for which the store had no capacity."),
		ruleSettings: desc("rule_info", "The active rules. The value is always 1.", "rule", "mode", "algorithm", "limits"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.decisions, c.unmatched, c.ruleSettings, c.reloads, c.reloadGood, c.reloadTime, c.fallbacks, c.abandoned, c.clockErrors,
	} {
		ch <- d
	}
	c.quota.describe(ch)
	if !c.library {
		for _, d := range []*prometheus.Desc{
			c.build, c.seconds, c.requests, c.requestsByPath, c.answers, c.serviceSeconds, c.requestSeconds,
			c.failures, c.inFlight, c.waiting,
		} {
			ch <- d
		}
	}
	if c.config.Shared != nil {
		c.shared.describe(ch)
	}
	if c.config.Shares != nil {
		c.shares.describe(ch)
	}
	if c.config.Throttle != nil {
		c.throttle.describe(ch)
	}
	if c.config.Metering != nil {
		c.metering.describe(ch)
	}
	if c.config.Guard != nil {
		c.outcomes.describe(ch)
		c.tokens.describe(ch)
	}
	if c.config.Front != nil {
		for _, d := range []*prometheus.Desc{
			c.connections, c.connectionBound, c.accepted, c.closedForMemory, c.acceptPauses, c.linesDropped, c.expires,
		} {
			ch <- d
		}
	}
	if c.config.Server != nil {
		c.server.describe(ch)
	}
	if c.config.Leases != nil {
		c.leases.describe(ch)
	}
	if c.config.Refused != nil {
		ch <- c.refused
	}
	if c.config.Sessions != nil {
		ch <- c.sessions
	}
	if c.config.Modes != nil {
		c.modes.describe(ch)
	}
	if c.config.Store != nil {
		for _, d := range []*prometheus.Desc{
			c.places, c.placesUsed, c.blocks, c.blocksUsed, c.storeEvicted, c.storeRefused,
		} {
			ch <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.collectRules(ch)
	if !c.library {
		ch <- gauge(c.build, 1, c.config.Version, c.config.Commit, c.config.Go)
		c.collectTraffic(ch, &c.config.Report.Traffic)
	}
	c.collectReloads(ch, &c.config.Report.Reloads)
	if c.config.Shared != nil {
		c.shared.collect(ch, c.config.Shared())
	}
	c.collectShares(ch)
	if c.config.Metering != nil {
		s := c.config.Metering()
		c.metering.collect(ch, &s)
	}
	if c.config.Throttle != nil {
		if t, ok := c.config.Throttle(); ok {
			c.throttle.collect(ch, &t)
		}
	}
	if c.config.Front != nil {
		c.collectFront(ch, c.config.Front())
	}
	if c.config.Refused != nil {
		c.config.Refused(func(listener, reason string, n uint64) { ch <- counter(c.refused, n, listener, reason) })
	}
	if c.config.Sessions != nil {
		ch <- gauge(c.sessions, c.config.Sessions())
	}
	if c.config.Modes != nil {
		c.modes.collect(ch, c.config.Modes)
	}
	if c.config.Server != nil {
		s := c.config.Server()
		c.server.collect(ch, &s)
	}
	if c.config.Leases != nil {
		l := c.config.Leases()
		c.leases.collect(ch, &l)
	}
	if c.config.Store != nil {
		c.collectStore(ch, c.config.Store())
	}
}

// collectShares collects the stages without rules, and fair share if the guard has it.
func (c *collector) collectShares(ch chan<- prometheus.Metric) {
	for _, counted := range c.config.Report.Stages() {
		c.collectDecisions(ch, &counted)
	}
	if c.config.Shares == nil {
		return
	}
	counted, _ := c.config.Report.Stage(guard.FairShareName)
	if s, ok := c.config.Shares(); ok {
		c.shares.collect(ch, &s, anonymousIn(&counted))
	}
}

func (c *collector) collectDecisions(ch chan<- prometheus.Metric, rule *report.RuleCounts) {
	for _, n := range rule.Modes {
		ch <- counter(c.decisions, n.N, rule.Rule.Name, n.Mode.String(), n.Verdict.String(), n.Reason.String())
	}
}

func (c *collector) collectRules(ch chan<- prometheus.Metric) {
	for _, rule := range c.config.Report.Rules() {
		ch <- gauge(c.ruleSettings, 1, rule.Rule.Name, rule.Rule.Mode.String(), report.AlgorithmOf(rule.Rule), report.LimitsOf(rule.Rule))
		c.collectDecisions(ch, &rule)
		c.quota.collect(ch, &rule)
		for _, n := range rule.Fallbacks {
			ch <- counter(c.fallbacks, n.N, rule.Rule.Name, n.Fallback.String())
		}
		if c.config.Guard != nil {
			c.outcomes.collect(ch, c.config.Guard, rule.Rule)
			c.tokens.collect(ch, c.config.Guard, rule.Rule)
		}
	}
	if c.config.Guard != nil {
		ch <- counter(c.outcomes.unreturned, c.config.Guard.Unreturned())
		c.tokens.collectBodies(ch, c.config.Guard)
	}
	ch <- counter(c.abandoned, c.config.Report.Abandoned())
	ch <- counter(c.clockErrors, c.config.Report.ClockErrors())
	c.quota.collectUnwarned(ch, c.config.Report)
	ch <- counter(c.unmatched, c.config.Report.Unmatched())
}

func (c *collector) collectReloads(ch chan<- prometheus.Metric, r *report.Reloads) {
	loaded, failed := r.Counts()
	ch <- counter(c.reloads, loaded, "success")
	ch <- counter(c.reloads, failed, "failure")
	ch <- gauge(c.reloadGood, truth(r.Good()))
	ch <- gauge(c.reloadTime, r.Last().Unix())
}

func (c *collector) collectTraffic(ch chan<- prometheus.Metric, t *report.Traffic) {
	ch <- histogram(c.seconds, t.Decision.Distribution())
	ch <- histogram(c.serviceSeconds, t.ServiceTime.Distribution())
	ch <- histogram(c.requestSeconds, t.RequestTime.Distribution())
	for _, class := range report.CodeClasses() {
		ch <- counter(c.requests, t.Answers(class), class.String())
		for _, from := range report.Origins() {
			ch <- counter(c.answers, t.AnswersFrom(from, class), from.String(), class.String())
		}
	}
	for _, path := range report.Paths() {
		ch <- counter(c.requestsByPath, t.ServedBy(path), pathLabels(path)...)
	}
	for _, kind := range report.UpstreamErrors() {
		ch <- counter(c.failures, t.UpstreamFailures(kind), kind.String())
	}
	ch <- gauge(c.inFlight, t.InFlight.Load())
	ch <- gauge(c.waiting, t.Waiting.Load())
}

// pathLabels returns the labels path and reason.
func pathLabels(p report.Path) []string {
	if p == report.PathFast {
		return []string{"fast", ""}
	}
	return []string{"standard", p.String()}
}

func (c *collector) collectFront(ch chan<- prometheus.Metric, f Front) {
	ch <- gauge(c.connections, f.Connections)
	ch <- gauge(c.connectionBound, f.MaxConnections)
	ch <- counter(c.accepted, f.Accepted)
	ch <- counter(c.closedForMemory, c.config.Report.Traffic.ClosedForMemory.Load())
	ch <- counter(c.acceptPauses, f.AcceptPauses)
	ch <- counter(c.linesDropped, f.AccessLinesDropped)
	if !f.CertificateExpires.IsZero() {
		ch <- gauge(c.expires, f.CertificateExpires.Unix())
	}
}

func (c *collector) collectStore(ch chan<- prometheus.Metric, s memory.Stats) {
	ch <- gauge(c.places, s.Places)
	ch <- gauge(c.placesUsed, s.Used)
	ch <- gauge(c.blocks, s.BlockBytes)
	ch <- gauge(c.blocksUsed, s.BlockBytesLent)
	ch <- counter(c.storeEvicted, s.Evicted)
	ch <- counter(c.storeRefused, s.Refused)
}

// The functions below panic if the labels do not match the description. A test gathers
// every metric, so a scrape never panics.
func counter(d *prometheus.Desc, v uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func gauge(d *prometheus.Desc, v int64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
}

func histogram(d *prometheus.Desc, of report.Distribution) prometheus.Metric {
	buckets := make(map[float64]uint64, len(of.Below))
	for bound, n := range of.Below {
		buckets[bound.Seconds()] = n
	}
	return prometheus.MustNewConstHistogram(d, of.Count, of.Sum.Seconds(), buckets)
}
