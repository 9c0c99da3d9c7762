package app

import (
	"context"

	"github.com/headgate/headgate/internal/config"
)

// follow reloads the instance when a file of the configuration changes or the operator
// requests a reload. It closes the channel after ctx has ended and its goroutines have stopped.
func (i *Instance) follow(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i.followOne(ctx) {
		}
	}()
	return ended
}

// followOne watches the files until the operator reloads the instance. It returns false when
// ctx has ended. After such a reload the caller starts a new watch, which compares with the
// files that the reload read. The old watch would miss a change back to the earlier text.
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
			if i.reloadBy("signal") == nil {
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
		_ = i.reloadBy("file " + i.options.Path) // reloadBy has logged its error.
		return i.config.Load().Files()
	})
	if err != nil {
		i.options.Log.Error("the configuration file is not watched: reload with headgate ctl reload", "error", err)
	}
}
