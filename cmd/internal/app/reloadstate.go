package app

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/envoy"
)

// partConfiguration is the part of a reload that reads the file: a value of ReloadFailure.Part.
const partConfiguration = "configuration"

// reloadEnded records the result of a part's reload for status and metrics.
func (i *Instance) reloadEnded(part string, err error) {
	if err != nil {
		i.rules.Report().Reloads.Failed()
	} else if part == partConfiguration || part == envoy.PartDomains {
		i.rules.Report().Reloads.Loaded(time.Now())
	}
	i.rules.Report().Reloads.SetGood(i.reloads.Ended(part, err))
}

func (i *Instance) reloadStatus() admin.ReloadStatus {
	succeeded, failed := i.rules.Report().Reloads.Counts()
	return admin.ReloadStatus{
		Loaded: i.rules.Report().Reloads.Last().UTC(), Succeeded: succeeded, Failed: failed, Failures: i.reloads.List(),
		Waiting: i.waiting(), Last: i.host.History.List(),
	}
}

// waiting lists the settings that wait for a restart, without those of the command that does not run.
func (i *Instance) waiting() []string {
	other := i.otherCommand()
	return slices.DeleteFunc(i.options.Config.NeedsRestart(i.config.Load()), func(path string) bool {
		return path == other || strings.HasPrefix(path, other+".")
	})
}

// otherCommand is the section of the command that does not run.
func (i *Instance) otherCommand() string {
	if i.options.Server {
		return "proxy"
	}
	return "server"
}

// reloadNow reloads for the operator that by names. The error is component.ErrStopping after the stop; the status has other failures.
func (i *Instance) reloadNow(by string) (admin.ReloadStatus, error) {
	err := i.reloadBy(by)
	if errors.Is(err, component.ErrStopping) {
		return admin.ReloadStatus{}, err
	}
	if err == nil {
		select {
		case i.reloaded <- struct{}{}: // The watch starts again and compares with the files just read.
		default:
		}
	}
	return i.reloadStatus(), nil
}
