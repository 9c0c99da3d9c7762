package etcd

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"         //nolint:depguard // etcd's client takes no other logger
	"go.uber.org/zap/zapcore" //nolint:depguard // etcd's client takes no other logger
)

// defaultClientLogger is the name of the logger that etcd's client makes by default. It writes JSON to
// stderr.
const defaultClientLogger = "etcd-client"

// ClientLogger returns a logger for clientv3.Config.Logger that writes to l. Without it, etcd's client
// writes JSON to stderr. Messages begin with "etcd client: ". A message is logged once in 10 s, because
// the client repeats it twice a second while etcd is unreachable.
func ClientLogger(l *slog.Logger) *zap.Logger {
	return zap.New(&slogCore{handler: l.Handler(), recent: &recentLines{last: map[string]time.Time{}}})
}

// adoptLines makes a client with the default logger log to l. A logger set by the program stays. The
// client's lease and watch keep their first logger; use ClientLogger in clientv3.Config.Logger for
// them.
func adoptLines(c *clientv3.Client, l *slog.Logger) {
	if given := c.GetLogger(); given != nil && given.Name() == defaultClientLogger {
		c.WithLogger(ClientLogger(l)) //nolint:staticcheck // a client that exists has no other way
	}
}

// slogCore is a zapcore.Core that writes to a slog.Handler.
type slogCore struct {
	handler slog.Handler
	fields  []zapcore.Field
	recent  *recentLines
}

// maxRecentLines bounds the messages that recentLines keeps; the client has some 40.
const maxRecentLines = 64

// recentLines has the messages that were logged within faultEvery.
type recentLines struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// admit reports whether to log a message now, and remembers it.
func (r *recentLines) admit(message string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, known := r.last[message]; known && now.Sub(last) < faultEvery {
		return false
	}
	if len(r.last) >= maxRecentLines {
		clear(r.last)
	}
	r.last[message] = now
	return true
}

// Enabled implements zapcore.LevelEnabler.
func (c *slogCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), levelOf(l))
}

// With implements zapcore.Core.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{c.handler, slices.Concat(c.fields, fields), c.recent}
}

// Check implements zapcore.Core.
func (c *slogCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if !c.recent.admit(e.Message, e.Time) {
		return nil
	}
	r := slog.NewRecord(e.Time, levelOf(e.Level), "etcd client: "+e.Message, 0)
	for _, f := range slices.Concat(c.fields, fields) {
		r.AddAttrs(attrs(f)...)
	}
	return c.handler.Handle(context.Background(), r)
}

// Sync implements zapcore.Core.
func (c *slogCore) Sync() error { return nil }

// attrs converts a field with zap's own encoder of maps. A field may have several values, such as
// an error with details.
func attrs(f zapcore.Field) []slog.Attr {
	values := zapcore.NewMapObjectEncoder()
	f.AddTo(values)
	all := make([]slog.Attr, 0, len(values.Fields))
	for name, value := range values.Fields {
		all = append(all, slog.Any(name, value))
	}
	slices.SortFunc(all, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// levelOf returns the level of slog. Levels above error become error.
func levelOf(l zapcore.Level) slog.Level {
	switch {
	case l < zapcore.InfoLevel:
		return slog.LevelDebug
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}
