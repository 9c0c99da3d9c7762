package config

import (
	"log/slog"
	"time"

	"github.com/headgate/headgate/rule"
)

// config reads the whole file into c.
func (r *reader) config(c *Config) {
	root := r.section(value{node: r.root}, "write each field as name: value, with a space behind the colon")
	if root.self.node == nil {
		return
	}
	root.settable, root.outline = true, r.outline
	root.version()
	root.store(c)
	root.duration("shutdown_timeout", &c.ShutdownTimeout, 0, 10*time.Minute)
	root.log(&c.Log)
	root.identity(&c.Identity)
	oneOf(root, "evaluate", &c.Independent, []choice[bool]{
		{word: "all_or_nothing", value: false}, {word: "independent", value: true},
	})
	root.paths(&c.Folds)
	root.rules(c)
	root.fairShare(c)
	root.proxy(&c.Proxy)
	root.checkRequestID(c)
	root.checkFairShare(c)
	root.later("server", "leave it out, and use proxy")
	root.admin(&c.Admin)
	root.checkListeners()
	r.proxyOnly = root.unusedByPrograms()
	root.end()
}

// version is asked for so that a later version can change what a field means.
func (s *section) version() {
	s.required("version", "write version: 1 on the first line")
	s.outline.field("version").numbers(nil, []int{1})
	if v, ok := s.get("version"); ok {
		var version int64
		s.wholeNumber(v, &version, 1, 1)
	}
}

// paths reads what of a path the service disregards.
func (s *section) paths(f *rule.Folds) {
	paths := s.sub("paths", "{ignore_case: true}")
	paths.boolean("ignore_case", &f.Case)
	paths.boolean("ignore_trailing_slash", &f.TrailingSlash)
	paths.boolean("ignore_parameters", &f.Parameters)
	paths.end()
}

// log reads what is logged.
func (s *section) log(l *Log) {
	log := s.sub("log", "{level: info, decisions: sampled}")
	oneOf(log, "level", &l.Level, []choice[slog.Level]{
		{word: "debug", value: slog.LevelDebug},
		{word: "info", value: slog.LevelInfo},
		{word: "warn", value: slog.LevelWarn},
		{word: "error", value: slog.LevelError},
	})
	oneOf(log, "decisions", &l.Decisions, []choice[LogDecisions]{
		{word: "sampled", value: LogSampled}, {word: "all", value: LogAll}, {word: "none", value: LogNone},
	})
	oneOf(log, "keys", &l.Keys, []choice[LogKeys]{
		{word: string(KeysHash), value: KeysHash},
		{word: string(KeysPlain), value: KeysPlain},
		{word: string(KeysOff), value: KeysOff},
	})
	log.file("keys_secret_file", &l.KeysSecretFile)
	oneOf(log, "access", &l.Access, []choice[AccessFormat]{
		{word: string(AccessOff), value: AccessOff},
		{word: string(AccessJSON), value: AccessJSON},
		{word: string(AccessCombined), value: AccessCombined},
	})
	log.file("access_file", &l.AccessFile)
	log.end()
	if v, ok := log.given("access_file"); ok && l.Access == AccessOff && !log.blamedAny("access", "access_file") {
		s.fault(v, "is not used without an access log", "set log.access to json or combined")
	}
	if v, ok := log.given("keys_secret_file"); ok && l.Keys != KeysHash && !log.blamedAny("keys", "keys_secret_file") {
		s.fault(v, "is not used by keys "+string(l.Keys), "leave it out, or write keys: hash")
	}
}
