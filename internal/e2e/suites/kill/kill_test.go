// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kill_test kills coordinators at random moments.
package kill_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

// TestKill kills atollctl at random moments of its operations. At times it also kills the recovery,
// or leaves the recovery to the next operation. After each recovery an audit finds no violation.
// The planes, read without code of the library, agree with the exit code: after 0 the change is
// made, after a failure it is not made, after a kill either is allowed. Nothing else has changed.
// ATOLL_KILLS is the number of processes to kill.
func TestKill(t *testing.T) {
	kills := ctltest.Count(t, "ATOLL_KILLS", 40)
	ring := ctltest.New(t, planetest.Shared(t, 3), 3)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	k := &killer{t: t, ring: ring, shell: ring.Shell("operations"), random: random, acme: fmt.Sprintf("acme-%x", seed), known: map[subject]state{}, became: map[bool]int{}}
	k.shell.Succeed(t, "account", "add", "-f", k.account(k.acme, "Tenant"))
	usual := k.shell.Succeed(t, "servicecluster", "add", "warm-up", "-n", k.acme, "--target", "us-east", "-f", k.cluster("warm-up"))
	k.shell.Succeed(t, "servicecluster", "remove", "warm-up", "-n", k.acme)
	k.limit = 2 * usual
	k.known = k.look()

	start := time.Now()
	for n := 0; k.killed < kills; n++ {
		require.Less(t, n, 20*kills, "too few processes could be killed")
		k.step()
	}
	t.Logf("%d operations, %d processes killed, of them %d in recovery, %d operations left to the next, in %s; ended by exit code: %v",
		k.operations, k.killed, k.killedInRecovery, k.left, time.Since(start).Round(time.Second), k.codes)
	t.Logf("of the operations whose process was killed %d were in effect after recovery and %d were not", k.became[true], k.became[false])
}

type killer struct {
	t      *testing.T
	ring   *ctltest.Ring
	shell  *ctltest.Shell
	random *rand.Rand
	acme   string
	limit  time.Duration     // upper bound of the moment of a kill
	known  map[subject]state // state that look read last
	tenant int               // number of the latest tenant

	operations, killed, killedInRecovery, left int
	codes                                      [6]int
	became                                     map[bool]int
}

// kill runs a command and kills it at a random moment before limit. It adjusts limit so that about
// three commands in ten end before the kill.
func (k *killer) kill(args ...string) ctltest.Result {
	k.t.Helper()
	result, err := k.shell.Run(k.t.Context(), 1+time.Duration(k.random.Int64N(int64(k.limit))), args...)
	require.NoError(k.t, err)
	if result.Code == ctltest.Killed {
		k.killed++
		k.limit += k.limit / 20
	} else {
		k.limit -= k.limit / 8
	}
	return result
}

// step runs one operation and checks its result.
func (k *killer) step() {
	k.t.Helper()
	op := k.operation()
	k.operations++
	wanted, code := op.on(k.known[op.subject])
	result := k.kill(op.args...)
	if result.Code == ctltest.Killed && k.random.IntN(8) == 0 {
		k.left++
		// Another operation recovers the killed one. It has another subject, so its exit code does
		// not depend on the outcome of the killed operation.
		other := k.operation()
		for other.subject == op.subject {
			other = k.operation()
		}
		k.operations++
		next, code := other.on(k.known[other.subject])
		then := k.shell.End(k.t, other.args...)
		require.Equal(k.t, code, then.Code, "%v was %v, %s after %s", other.subject, k.known[other.subject], then, result)
		k.known[other.subject] = next
		if next == (state{}) {
			delete(k.known, other.subject)
		}
	}
	for result.Code == ctltest.Killed && k.random.IntN(4) == 0 {
		if k.kill("wal", "recover").Code != ctltest.Killed {
			break
		}
		k.killedInRecovery++
	}
	recovered := k.shell.Recover(k.t)
	require.Equal(k.t, ctltest.Done, recovered.Code, "%s", recovered)
	k.shell.Audit(k.t)

	before, now := k.known, k.look()
	changed := maps.Clone(now)
	changed[op.subject] = before[op.subject]
	if changed[op.subject] == (state{}) {
		delete(changed, op.subject)
	}
	require.Equal(k.t, before, changed, "an object changed that no operation was about; %s", result)
	if result.Code == ctltest.Killed {
		require.Contains(k.t, []state{before[op.subject], wanted}, now[op.subject], "%v; %s", op.subject, result)
		if wanted != before[op.subject] {
			k.became[now[op.subject] == wanted]++
		}
	} else {
		k.codes[result.Code]++
		require.Equal(k.t, code, result.Code, "%v was %v; %s", op.subject, before[op.subject], result)
		require.Equal(k.t, wanted, now[op.subject], "%v; %s", op.subject, result)
	}
	k.known = now
}
