// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Policy defines how many peers must respond for a call over all peers to succeed. The zero value is All.
type Policy struct {
	kind     policyKind
	required []PeerName
	quorum   int
}

type policyKind int

const (
	kindAll policyKind = iota
	kindFailFast
	kindBestEffort
	kindRequire
	kindQuorum
)

// All calls every peer and waits for all; each must succeed.
func All() Policy { return Policy{} }

// FailFast is All, but the first failure cancels the rest.
func FailFast() Policy { return Policy{kind: kindFailFast} }

// BestEffort accepts any number of responses. It waits for every peer, until the context ends.
func BestEffort() Policy { return Policy{kind: kindBestEffort} }

// Require needs these peers to succeed; the others may fail. It waits for every peer, until the context ends. A
// required peer that is not in the Snapshot is a failure (ErrUnknownPeer).
func Require(peers ...PeerName) Policy {
	return Policy{kind: kindRequire, required: slices.Clone(peers)}
}

// Quorum needs any n peers to succeed, and cancels the other calls once n peers have succeeded. Otherwise it waits
// for every peer, until the context ends. An n below 1 counts as 1.
func Quorum(n int) Policy { return Policy{kind: kindQuorum, quorum: max(n, 1)} }

// String names the policy, as in "quorum of 2".
func (p Policy) String() string {
	switch p.kind {
	case kindFailFast:
		return "fail fast"
	case kindBestEffort:
		return "best effort"
	case kindRequire:
		return fmt.Sprintf("require %v", p.required)
	case kindQuorum:
		return fmt.Sprintf("quorum of %d", p.quorum)
	default:
		return "all"
	}
}

var errEnough = errors.New("canceled: enough peers responded")

// tally decides when a policy cancels the remaining calls.
type tally struct {
	policy Policy
	mu     sync.Mutex
	good   int
}

func newTally(p Policy) *tally { return &tally{policy: p} }

// add counts one outcome and returns why the remaining calls are to be canceled, or nil.
func (t *tally) add(name PeerName, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.good++
	}
	switch {
	case t.policy.kind == kindFailFast && err != nil:
		return fmt.Errorf("canceled: peer %s failed first", name)
	case t.policy.kind == kindQuorum && t.good >= t.policy.quorum:
		return errEnough
	default:
		return nil
	}
}
