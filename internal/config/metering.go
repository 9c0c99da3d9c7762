package config

import (
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/meter"
	"github.com/headgate/headgate/internal/meter/journal"
	"github.com/headgate/headgate/rule"
)

const meteringExample = "{journal: /var/lib/headgate/metering, events: {url: https://billing.example/events}}"

// Metering says where the usage of quotas is delivered. Load resolves relative paths from the folder of the configuration.
type Metering struct {
	// Journal is the folder of the journal, and MaxSize its bound in bytes.
	Journal string
	MaxSize int64
	Sync    meter.Sync
	// Instance names this instance in the ids of records. "" is the name of the machine.
	Instance string
	// Every is the pause between two deliveries. MaxCustomers bounds the customers of a minute.
	Every        time.Duration
	MaxCustomers int64
	// Events and Lines are the outputs; one of them is not nil.
	Events *MeteringEvents
	Lines  *MeteringLines
}

// MeteringEvents are the settings of the output as CloudEvents.
type MeteringEvents struct {
	URL       string
	TokenFile string
	CA        string
	MaxEvents int64
	MaxSize   int64
	Timeout   time.Duration
}

// MeteringLines are the settings of the output as lines of JSON in files.
type MeteringLines struct {
	Folder  string
	MaxSize int64
	MaxAge  time.Duration
	// Keep is the number of complete files that stay; 0 keeps all.
	Keep int64
}

// InstanceName gives Instance, or the name of the machine.
func (m *Metering) InstanceName() string {
	if m.Instance != "" {
		return m.Instance
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "headgate"
	}
	return name
}

// The most bytes that metering takes in memory: the rows of 100,000 customers in each of the minutes that stay, and a batch of each
// output. They are measured, and rounded up.
const (
	meteringRowBytes   = 1200
	meteringBatchBytes = 8 << 20
	// meteringQuotaBytes is a further quota of a customer: its decisions and corrections, with spare memory of the list, in four minutes.
	meteringQuotaBytes = 768
)

// meteringMemory gives the most memory that metering takes, in bytes.
func (c *Config) meteringMemory() int64 {
	if c.Metering == nil {
		return 0
	}
	quotas := map[string]bool{}
	for i := range c.Rules {
		if name := c.Rules[i].Quota; name != "" {
			quotas[name] = true
		}
	}
	return meteringBatchBytes + c.Metering.MaxCustomers*(meteringRowBytes+meteringQuotaBytes*max(0, int64(len(quotas))-1))
}

// metering reads the section metering.
func (s *section) metering(c *Config) {
	m := Metering{MaxSize: journal.DefaultMaxBytes, Every: meter.DefaultEvery, MaxCustomers: meter.DefaultMaxCustomers}
	section := s.sub(s.declare("metering", field.Restart, "Delivers what customers use of their quotas, for bills."), meteringExample)
	section.folder(section.declare("journal", field.Restart, "Folder of the journal, for this instance alone. Records stay in it until "+
		"they are delivered."), &m.Journal)
	section.size(section.declare("max_size", field.Restart, "Bound of the journal. Beyond it, the oldest records are dropped."),
		&m.MaxSize, journal.MinBytes, 1<<44)
	oneOf(section, section.declare("sync", field.Restart, "When the journal is synced to the disk: second syncs once a second; record "+
		"syncs before a record is delivered."), &m.Sync, []choice[meter.Sync]{
		{word: meter.SyncSecond.String(), value: meter.SyncSecond}, {word: meter.SyncRecord.String(), value: meter.SyncRecord},
	})
	section.instance(section.declare("instance", field.Restart, "Name of this instance in the ids of records. Default: the name of the "+
		"machine."), &m.Instance)
	section.duration(section.declare("every", field.Restart, "Pause between two deliveries."), &m.Every, time.Second, time.Hour)
	section.number(section.declare("max_customers", field.Restart, "Customers of a minute with records of their own; further ones are "+
		"summed under others."), &m.MaxCustomers, 1, meter.DefaultMaxCustomers)
	events := section.meteringEvents(&m)
	lines := section.meteringLines(&m)
	section.end()
	if !section.begun() {
		return
	}
	section.meteringNeeds(&m, events, lines)
	c.Metering = &m
}

// meteringNeeds checks what the section cannot leave out.
func (s *section) meteringNeeds(m *Metering, events, lines *section) {
	if m.Journal == "" && !s.blamed(s.pathOf("journal")) {
		s.missing("journal", "write a folder that belongs to this instance alone, like /var/lib/headgate/metering")
	}
	if m.Events == nil && m.Lines == nil && !s.blamed(s.pathOf("events")) && !s.blamed(s.pathOf("lines")) {
		s.fault(s.self, "has neither events nor lines", "write where records go, like lines: {folder: /var/lib/headgate/usage}")
	}
	if m.Events != nil && m.Events.URL == "" && !s.blamed(events.pathOf("url")) {
		events.missing("url", "write the address that gets the events, like https://billing.example/events")
	}
	if m.Lines != nil && m.Lines.Folder == "" && !s.blamed(lines.pathOf("folder")) {
		lines.missing("folder", "write the folder that gets the files, like /var/lib/headgate/usage")
	}
}

// instancePattern is what the names of instances have, because files and URLs have them too.
const instancePattern = "^[A-Za-z0-9._:-]{1,64}$"

// instance reads the name of an instance.
func (s *section) instance(name string, into *string) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).written("", instancePattern)
	v, ok := s.scalar(name, "a name")
	if !ok {
		return
	}
	const most, signs = 64, "._:-"
	valid := v.text() != "" && len(v.text()) <= most && strings.Trim(v.text(), nameCharacters+signs) == ""
	for _, r := range v.text() {
		valid = valid && strings.ContainsRune(nameCharacters+signs, r)
	}
	if !valid {
		s.fault(v, quote(v.text())+" is no name of an instance", "use 1 to 64 letters, digits, and the signs . _ : -")
		return
	}
	*into = v.text()
}

const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// meteringEvents reads the output as CloudEvents.
func (s *section) meteringEvents(m *Metering) *section {
	e := MeteringEvents{MaxEvents: meter.DefaultMaxEvents, MaxSize: meter.DefaultMaxBatchBytes, Timeout: meter.DefaultTimeout}
	events := s.sub(s.declare("events", field.Restart, "Posts the records as CloudEvents, in batches."),
		"{url: https://billing.example/events}")
	events.eventsURL(events.declare("url", field.Restart, "Address that gets the events."), &e.URL)
	events.file(events.declare("token_file", field.Restart, "File with the bearer token of the address. It is read for each request."),
		&e.TokenFile)
	events.file(events.declare("ca", field.Restart, "File with the authorities of the address's certificate, in PEM. Default: those of "+
		"the machine."), &e.CA)
	events.number(events.declare("max_events", field.Restart, "Events of one request."), &e.MaxEvents, 1, meter.MostEvents)
	events.size(events.declare("max_size", field.Restart, "Size of one request; an event that is larger is sent alone."), &e.MaxSize,
		1<<10, 64<<20)
	events.duration(events.declare("timeout", field.Restart, "Longest time of one request."), &e.Timeout,
		100*time.Millisecond, 5*time.Minute)
	events.end()
	if events.begun() {
		m.Events = &e
	}
	return events
}

// eventsURLPattern is the form of the address.
const eventsURLPattern = `^https?://[^/@?#\s]+[^@#\s]*$`

// eventsURL reads the address of the endpoint.
func (s *section) eventsURL(name string, into *string) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).written("", eventsURLPattern)
	v, ok := s.scalar(name, "a URL")
	if !ok {
		return
	}
	const example = "write it like https://billing.example/events"
	u, err := url.Parse(v.text())
	if _, _, hostOK := rule.ParseHost(hostOf(u)); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || !hostOK {
		s.hide(v)
		shown := ""
		if !strings.ContainsAny(v.text(), "@?#") { // It may have a password or a token.
			shown = quote(v.text()) + " "
		}
		s.fault(v, shown+"is no URL with http or https and a host", example)
		return
	}
	if u.User != nil || strings.Contains(v.text(), "@") {
		s.hide(v)
		s.fault(v, "contains a user or a password", "remove it, and write a bearer token into token_file")
		return
	}
	if u.Fragment != "" || strings.Contains(v.text(), "#") {
		s.fault(v, "has a fragment, which is never sent", example)
		return
	}
	*into = v.text()
}

func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Host
}

// meteringLines reads the output as files.
func (s *section) meteringLines(m *Metering) *section {
	l := MeteringLines{MaxSize: meter.DefaultLinesBytes, MaxAge: meter.DefaultLinesAge}
	lines := s.sub(s.declare("lines", field.Restart, "Writes the records as lines of JSON into files."),
		"{folder: /var/lib/headgate/usage}")
	lines.folder(lines.declare("folder", field.Restart, "Folder of the files."), &l.Folder)
	lines.size(lines.declare("max_size", field.Restart, "Size after which a file is complete."), &l.MaxSize, 1<<10, 1<<40)
	lines.duration(lines.declare("max_age", field.Restart, "Age after which a file is complete."), &l.MaxAge, time.Second, 31*24*time.Hour)
	lines.number(lines.declare("keep", field.Restart, "Complete files of this instance that stay; 0 keeps all."), &l.Keep, 0, 1_000_000)
	lines.end()
	if lines.begun() {
		m.Lines = &l
	}
	return lines
}
