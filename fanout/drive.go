// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// errStalled would be a bug of the protocol: a machine that is not over and
// waits for nothing.
var errStalled = errors.New("protocol stalled: the machine waits for nothing")

// machine is what decides: protocol.Machine or protocol.Change.
type machine interface {
	Start() []protocol.Command
	Handle(protocol.Reply) []protocol.Command
	Expire() []protocol.Command
	Over() bool
}

// drive has commands executed until m is over. Begin is called while the machine
// stands still; what it returns carries the command out. When ctx ends, the
// machine is told so and has the time of cleanup to end.
func drive(ctx context.Context, m machine, cleanup time.Duration, begin func(protocol.Command) func(context.Context) protocol.Reply) error {
	detached := context.WithoutCancel(ctx)
	stop, cancelAll := context.WithCancel(detached)
	var (
		wg          sync.WaitGroup
		replies     = make(chan protocol.Reply)
		outstanding int
	)
	launch := func(ctx context.Context, commands []protocol.Command) {
		for _, command := range commands {
			outstanding++
			call, cancel := context.WithCancel(ctx)
			detach := context.AfterFunc(stop, cancel)
			execute := begin(command)
			wg.Go(func() {
				defer cancel()
				defer detach()
				reply := execute(call)
				reply.Strand, reply.Seq = command.Strand, command.Seq
				select {
				case replies <- reply:
				case <-stop.Done():
				}
			})
		}
	}
	defer wg.Wait()
	defer cancelAll()

	launch(ctx, m.Start())
	for !m.Over() && ctx.Err() == nil {
		if outstanding == 0 {
			return errStalled
		}
		select {
		case reply := <-replies:
			outstanding--
			launch(ctx, m.Handle(reply))
		case <-ctx.Done():
		}
	}
	if m.Over() {
		return nil
	}
	grace, cancel := context.WithTimeout(detached, cleanup)
	defer cancel()
	launch(grace, m.Expire())
	for !m.Over() {
		if outstanding == 0 {
			return errStalled
		}
		reply := <-replies
		outstanding--
		launch(grace, m.Handle(reply))
	}
	return nil
}
