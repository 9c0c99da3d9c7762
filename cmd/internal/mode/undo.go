package mode

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/actions"
	"github.com/headgate/headgate/guard"
)

// undo gives the commands that bring overrides back after a change of some names; without names, after a change of all. here says
// that they are those of one instance beside a source.
func (o overrides) undo(names []string, here bool, now time.Time) string {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(o)) // The change has replaced all. The one for all, "", comes first, and replaces the others.
		if _, all := o[""]; !all {
			names = append([]string{""}, names...)
		}
	}
	var order []string
	grouped := map[string][]string{}
	for _, name := range names {
		flags := o.flags(name, here, now)
		if name == "" {
			flags = "\x00" + flags // a command of its own, before the others
		}
		if _, known := grouped[flags]; !known {
			order = append(order, flags)
		}
		grouped[flags] = append(grouped[flags], name)
	}
	commands := make([]string, 0, len(order))
	for _, key := range order {
		mode, flags, _ := strings.Cut(strings.TrimPrefix(key, "\x00"), " ")
		words := []string{"headgate", "ctl", "mode", mode}
		for _, name := range grouped[key] {
			if name != "" {
				words = append(words, name)
			}
		}
		command := actions.Command(words...)
		if flags != "" {
			command += " " + flags
		}
		commands = append(commands, command)
	}
	return strings.Join(commands, " && ")
}

// flags gives the mode of a name and the flags of the command that sets it again.
func (o overrides) flags(name string, here bool, now time.Time) string {
	one, found := o[name]
	words := []string{file}
	if found {
		words = []string{one.Mode.String()}
		if one.Mode == guard.Enforce && one.Percent > 0 {
			words = append(words, "--percent="+strconv.Itoa(one.Percent))
		}
		if one.KeepBans {
			words = append(words, "--keep-bans")
		}
		if !one.until.IsZero() {
			words = append(words, actions.Left(one.until, now))
		}
	}
	if here {
		words = append(words, "--here")
	}
	return strings.Join(words, " ")
}
