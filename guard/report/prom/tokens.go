package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/guard"
)

// tokenMetrics describes the metrics of rules that settle by the body of the answer.
type tokenMetrics struct{ tokens, answers, estimated, actual, stopped, bodies *prometheus.Desc }

func newTokenMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *tokenMetrics {
	return &tokenMetrics{
		tokens: desc("rule_tokens_total", "Tokens that answers stated, by kind. input is without cached and written.", "rule", "kind"),
		answers: desc("rule_answers_total", "Answers under a rule that settles by their body, by what was read. stated: the answer has "+
			"its usage. none: it costs nothing. The others say why there is no usage.", "rule", "usage"),
		estimated: desc("rule_estimated_units_total", "Units that requests took before answers that stated the cost.", "rule"),
		actual:    desc("rule_actual_units_total", "Units that the answers to the same requests stated.", "rule"),
		stopped:   desc("rule_streams_stopped_total", "Streams that ended because their key had no units left (on_spent: stop).", "rule"),
		bodies: desc("request_bodies_read_total", "Bodies of requests that were read before the decision: whole, or in part because they "+
			"are longer than max_body or memory is short.", "seen"),
	}
}

func (m *tokenMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.tokens, m.answers, m.estimated, m.actual, m.stopped, m.bodies} {
		ch <- d
	}
}

// collect collects the metrics of a rule. Rules that do not settle by the body have none.
func (m *tokenMetrics) collect(ch chan<- prometheus.Metric, g *guard.Guard, r *guard.Rule) {
	if r.SettleBody == nil {
		return
	}
	t := g.Tokens(r.Name)
	ch <- counter(m.tokens, t.Input, r.Name, "input")
	ch <- counter(m.tokens, t.Cached, r.Name, "cached")
	ch <- counter(m.tokens, t.Written, r.Name, "written")
	ch <- counter(m.tokens, t.Output, r.Name, "output")
	for _, cause := range guard.TokenCauses() {
		ch <- counter(m.answers, g.AnswersBy(r.Name, cause), r.Name, cause)
	}
	ch <- counter(m.estimated, t.Estimated, r.Name)
	ch <- counter(m.actual, t.Actual, r.Name)
	if r.OnSpent == guard.StopAnswer {
		ch <- counter(m.stopped, t.Stopped, r.Name)
	}
}

// collectBodies collects the bodies that were read, if a rule reads bodies.
func (m *tokenMetrics) collectBodies(ch chan<- prometheus.Metric, g *guard.Guard) {
	if whole, part := g.BodiesRead(); g.ReadsBodies() || whole+part > 0 {
		ch <- counter(m.bodies, whole, "whole")
		ch <- counter(m.bodies, part, "part")
	}
}
