package app

import (
	"context"

	"github.com/headgate/headgate/config"
)

// follow reloads when a file of the configuration changes, and when the operator
// asks for it, until ctx ends. The channel is closed when all of it has ended.
func (i *Instance) follow(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i.followOne(ctx) {
		}
	}()
	return ended
}

// followOne watches the files, until the operator has asked for a reload or ctx ends,
// which it reports with false. After a reload the watch begins again, with what was
// read then: else it would not notice that a file is again as it was before.
func (i *Instance) followOne(ctx context.Context) bool {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		i.watch(watching)
	}()
	defer func() {
		stop()
		<-watched
	}()
	for {
		select {
		case <-i.options.Hangup:
			if i.Reload() == nil {
				return true
			}
		case <-i.reloaded:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// watch reloads when a file of the configuration changes, until ctx ends.
func (i *Instance) watch(ctx context.Context) {
	if i.options.Path == "" {
		return
	}
	err := config.Watch(ctx, i.options.Path, i.config.Load(), func() []string {
		_ = i.Reload() // It has told the log.
		return i.config.Load().Files()
	})
	if err != nil {
		i.options.Log.Error("changes of the configuration go unnoticed", "error", err)
	}
}
