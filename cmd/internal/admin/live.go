package admin

import "time"

// NoHistory is the answer of /api/v1/history of an instance that keeps no history.
const NoHistory = "admin.history.series is 0: set the number of series, like admin: {history: {series: 2000}}, and restart"

// Live is the answer of GET /api/v1/live: what an instance, or a fleet, does now. It has at most 64 KiB, so that a page or a terminal can
// read it each second. Rates are means over Window.
type Live struct {
	Instance string    `json:"instance"`
	Version  string    `json:"version"`
	Now      time.Time `json:"now"`
	Started  time.Time `json:"started"`
	State    string    `json:"state"` // serving or draining
	// Config is a digest of the configuration in force: instances with the same rules, plans and settings have the same one.
	Config string `json:"config"`
	// PendingRestart lists settings of the file that take effect at a restart.
	PendingRestart []string `json:"pending_restart,omitempty"`
	// Sequence is the number of seconds that the instance has sampled. Window is the number of seconds over which rates are means, up to
	// 15; 0 before the first second has ended.
	Sequence uint64 `json:"sequence"`
	Window   int    `json:"window_seconds"`

	// Sentence says in one or two sentences whether Headgate or the service fails requests, by what, and since when.
	Sentence string     `json:"sentence"`
	Totals   LiveTotals `json:"totals"`
	// Rules are the first rules and stages in the order of the call, and RulesTotal is the number of all.
	Rules      []LiveRule `json:"rules"`
	RulesTotal int        `json:"rules_total"`
	// Clients are those of fair share, in the order of their refusals, and then of their demand.
	Clients      []LiveClient  `json:"clients,omitempty"`
	ClientsTotal int           `json:"clients_total,omitempty"`
	Throttle     *LiveThrottle `json:"throttle,omitempty"`
	Stores       []LiveStore   `json:"stores,omitempty"`
	// Attention lists what needs attention, the worst first: at most 50, and AttentionTotal is the number of all.
	Attention      []Attention `json:"attention"`
	AttentionTotal int         `json:"attention_total"`
	// Marks are the last changes, the newest first: at most 20.
	Marks []Mark `json:"marks,omitempty"`
	// Instances are those of a fleet: empty without admin.peers. Sums are those of the instances that are OK.
	Instances []LiveInstance `json:"instances,omitempty"`
}

// LiveTotals are rates of requests in a second, and what is in progress.
type LiveTotals struct {
	Requests float64 `json:"requests"`
	// Passed reached the service, or the caller of a decision server. Refused are answered by Headgate, RefusedBy divides them by cause:
	// fair_share, rules, bans, quotas, throttle, undecided, other. WouldRefuse are those that rules in shadow would refuse.
	Passed      float64            `json:"passed"`
	Refused     float64            `json:"refused"`
	RefusedBy   map[string]float64 `json:"refused_by"`
	WouldRefuse float64            `json:"would_refuse"`
	// ServiceFailed are answers of the service with status 5xx, and requests without an answer of it.
	ServiceFailed float64 `json:"service_failed"`
	NoRule        float64 `json:"no_rule"`
	InFlight      int64   `json:"in_flight"`
	Waiting       int64   `json:"waiting"`
	// ServiceTime and RequestTime count the requests of the window by the bounds of DurationBounds: one count more than there are bounds.
	ServiceTime []uint64 `json:"service_time,omitempty"`
	RequestTime []uint64 `json:"request_time,omitempty"`
	// DurationBounds are upper bounds in seconds.
	DurationBounds []float64 `json:"duration_bounds,omitempty"`
}

// LiveRule is a rule or a stage.
type LiveRule struct {
	Name string `json:"name"`
	// Kind is rule, trial, fair_share, throttle, or stage for others. Mode is as in RuleStatus.
	Kind string `json:"kind"`
	Mode string `json:"mode"`
	// TrialOf is the rule of a trial. What a trial would refuse is in no sum.
	TrialOf string   `json:"trial_of,omitempty"`
	Limits  []string `json:"limits,omitempty"`
	// Passed, Refused and WouldRefuse are requests in a second.
	Passed      float64 `json:"passed"`
	Refused     float64 `json:"refused"`
	WouldRefuse float64 `json:"would_refuse"`
	// Since is when the present run of refusals began: a run ends after 15 seconds without one. Last is the last second with a refusal.
	// In shadow, these are refusals that would be.
	Since *time.Time `json:"since,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// Top is the most refused key of the last minutes, in the form of log.keys, or plain for callers that may administer.
	Top string `json:"top,omitempty"`
	// Differs says that not all instances have the rule with the same limits and mode.
	Differs bool `json:"differs,omitempty"`
}

// LiveClient is a client of fair share. Demand, Size, Default and Admitted are units in a cycle.
type LiveClient struct {
	Name     string     `json:"name"`
	Demand   float64    `json:"demand"`
	Size     float64    `json:"size"`
	Default  float64    `json:"default"`
	Admitted float64    `json:"admitted"`
	Refused  float64    `json:"refused"` // units in a second
	Since    *time.Time `json:"since,omitempty"`
}

// LiveThrottle is the queue in front of the service.
type LiveThrottle struct {
	Mode        string             `json:"mode"`
	InFlight    int                `json:"in_flight"`
	Concurrency int                `json:"concurrency,omitempty"`
	Advised     int                `json:"advised_concurrency,omitempty"`
	Queued      map[string]int     `json:"queued"`  // by criticality
	Refused     map[string]float64 `json:"refused"` // by criticality, in a second
	Reasons     map[string]float64 `json:"reasons"` // in a second
	MeanWait    float64            `json:"mean_wait_seconds"`
	Hung        bool               `json:"hung,omitempty"`
}

// LiveStore is a server of a shared store.
type LiveStore struct {
	Address string  `json:"address"`
	State   string  `json:"state"` // as in NodeStatus
	Calls   float64 `json:"calls"` // in a second
	Failed  float64 `json:"failed"`
	// LastError is the text of the last failure, at LastErrorAt.
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
}

// The levels of an Attention, the worst first.
const (
	// LevelFault is something that does not work.
	LevelFault = "fault"
	// LevelWarning is something that clients notice, or will.
	LevelWarning = "warning"
	LevelNote    = "note"
)

// Levels lists the levels, the worst first.
func Levels() []string { return []string{LevelFault, LevelWarning, LevelNote} }

// Attention is something that an operator should see.
type Attention struct {
	// Level is fault, warning or note.
	Level string `json:"level"`
	// About is what it concerns: rule, client, store, source, reload, quota, instance, throttle, memory. Name is its name.
	About string     `json:"about"`
	Name  string     `json:"name,omitempty"`
	Text  string     `json:"text"`
	Since *time.Time `json:"since,omitempty"`
	// Instance is the one that says it, in a fleet.
	Instance string `json:"instance,omitempty"`
}

// Mark is a change at a time: a reload, or what an operator did.
type Mark struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
	By   string    `json:"by,omitempty"`
	// Instance is the one that has changed, in a fleet.
	Instance string `json:"instance,omitempty"`
}

// LiveInstance is an instance of a fleet.
type LiveInstance struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// OK says that it has answered within the last seconds. Otherwise Error says why it did not, and Seen is the time of its last answer.
	OK       bool       `json:"ok"`
	Error    string     `json:"error,omitempty"`
	Seen     *time.Time `json:"seen,omitempty"`
	Version  string     `json:"version,omitempty"`
	Config   string     `json:"config,omitempty"`
	Started  *time.Time `json:"started,omitempty"`
	Requests float64    `json:"requests"`
	Refused  float64    `json:"refused"`
}

// History is the answer of GET /api/v1/history.
type History struct {
	Instance string `json:"instance"`
	// Start is the time of the first step, in Unix seconds, and Step the length of one in seconds.
	Start int64 `json:"start"`
	Step  int   `json:"step"`
	// Series have one value for each step: a count, or the last value of a gauge. null is a step without data.
	Series map[string][]*float64 `json:"series"`
	// Instances are those of a fleet: empty without admin.peers. Sums are those of the instances that are OK.
	Instances []LiveInstance `json:"instances,omitempty"`
}
