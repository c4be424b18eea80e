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

// errStalled means a bug of the protocol: the machine is not over, but none of its commands is
// running.
var errStalled = errors.New("protocol stalled: the machine waits for nothing")

// machine decides which commands to run: it is a protocol.Machine or a protocol.Change.
type machine interface {
	Start() []protocol.Command
	Handle(protocol.Reply) []protocol.Command
	Expire() []protocol.Command
	Over() bool
}

// drive executes the commands of m until m is over. For each command it calls begin, while m takes
// no step, and then runs the function that begin returned, in a goroutine of its own. When ctx
// ends, drive calls m.Expire; m then has the duration cleanup to end.
func drive(ctx context.Context, m machine, cleanup time.Duration, begin func(protocol.Command) func(context.Context) protocol.Reply) error {
	d := newDriver(m, cleanup, begin)
	defer d.close()
	_, err := d.run(ctx, nil)
	return err
}

// driver executes the commands of a machine.
type driver struct {
	machine machine
	cleanup time.Duration
	begin   func(protocol.Command) func(context.Context) protocol.Reply

	started     bool
	next        []protocol.Command // commands that a stopped run has not launched
	outstanding int
	replies     chan protocol.Reply
	wg          sync.WaitGroup
	closed      chan struct{}

	mu      sync.Mutex
	running map[*protocol.Command]context.CancelFunc
}

func newDriver(m machine, cleanup time.Duration, begin func(protocol.Command) func(context.Context) protocol.Reply) *driver {
	return &driver{
		machine: m, cleanup: cleanup, begin: begin, replies: make(chan protocol.Reply), closed: make(chan struct{}),
		running: map[*protocol.Command]context.CancelFunc{},
	}
}

// close cancels the commands in flight and waits for them.
func (d *driver) close() {
	close(d.closed)
	d.mu.Lock()
	for _, cancel := range d.running {
		cancel()
	}
	d.mu.Unlock()
	d.wg.Wait()
}

func (d *driver) launch(ctx context.Context, commands []protocol.Command) {
	for _, command := range commands {
		d.outstanding++
		call, cancel := context.WithCancel(ctx)
		d.mu.Lock()
		d.running[&command] = cancel
		d.mu.Unlock()
		execute := d.begin(command)
		d.wg.Go(func() {
			reply := execute(call)
			reply.Strand, reply.Seq = command.Strand, command.Seq
			d.mu.Lock()
			delete(d.running, &command)
			d.mu.Unlock()
			cancel()
			select {
			case d.replies <- reply:
			case <-d.closed:
			}
		})
	}
}

// run drives the machine until it is over, and returns true. It returns false early if the
// function enough returns true after a reply; the next call of run continues after that reply.
func (d *driver) run(ctx context.Context, enough func() bool) (over bool, err error) {
	m := d.machine
	commands := d.next
	if !d.started {
		d.started = true
		commands = m.Start()
	}
	d.next = nil
	d.launch(ctx, commands)
	for !m.Over() && ctx.Err() == nil {
		if d.outstanding == 0 {
			return false, errStalled
		}
		select {
		case reply := <-d.replies:
			d.outstanding--
			commands := m.Handle(reply)
			if enough != nil && !m.Over() && enough() {
				d.next = commands
				return false, nil
			}
			d.launch(ctx, commands)
		case <-ctx.Done():
		}
	}
	if m.Over() {
		return true, nil
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cleanup)
	defer cancel()
	d.launch(grace, m.Expire())
	for !m.Over() {
		if d.outstanding == 0 {
			return false, errStalled
		}
		reply := <-d.replies
		d.outstanding--
		d.launch(grace, m.Handle(reply))
	}
	return true, nil
}
