// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

const (
	exitDone       = 0
	exitFailed     = 1
	exitInput      = 2
	exitConflict   = 3
	exitDoubt      = 4
	exitViolations = 5
)

// problem is an error whose exit code and remedy are known where it arises.
type problem struct {
	code   int
	remedy string
	err    error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

func badInput(remedy, format string, args ...any) error {
	return &problem{code: exitInput, remedy: remedy, err: fmt.Errorf(format, args...)}
}

// classify returns the exit code of err and what the user can do about it.
func (s *session) classify(ctx context.Context, err error) (code int, remedy string) {
	if p, ok := find[*problem](err); ok {
		return p.code, p.remedy
	}
	if !s.started { // cobra did not understand the command line
		return exitInput, "see " + s.program + " --help"
	}
	removal := fmt.Sprintf("remove those, then run %q with the same --wal", s.program+" wal recover")
	if doubt, ok := find[*fanout.InDoubtError](err); ok {
		if _, occupied := find[*fanout.OccupiedError](doubt); occupied {
			return exitDoubt, removal
		}
		return exitDoubt, fmt.Sprintf("do not start it anew: run %q with the same --wal once the peers answer", s.program+" wal recover")
	}
	if foreign, ok := find[*fanout.ForeignError](err); ok {
		return exitConflict, fmt.Sprintf("if that coordinator is gone: %q", fmt.Sprintf("%s operation abort %s --others", s.program, foreign.Operation))
	}
	if is(err, fanout.ErrCommitted) {
		return exitConflict, "remove the object if it is not wanted"
	}
	if is(err, fanout.ErrUnknownOperation) {
		if is(err, region.ErrUnavailable) {
			return exitDoubt, "ask again once the peers answer"
		}
		return exitFailed, fmt.Sprintf("see what is open: %q", s.program+" operation list --peers")
	}
	if is(err, fanout.ErrEnded) || is(err, fanout.ErrNotFound) || is(err, fanout.ErrNotHeld) {
		return exitFailed, ""
	}
	if occupied, ok := find[*fanout.OccupiedError](err); ok && occupied.Committed {
		return exitDoubt, removal
	}
	if conflicting(err) {
		return exitConflict, s.adoption(err)
	}
	remedy, input := s.input(err)
	if !input || noSuchType(err) || is(err, fanout.ErrMembership) && !is(err, fanout.ErrWrongPeer) {
		if lack, ok := s.lacking(ctx); ok { // which peer, and of what
			return exitInput, lack
		}
	}
	if input || refused(err) {
		return exitInput, remedy
	}
	return exitFailed, ""
}

// refused says that err is a check of the request itself, which failed before
// anything was begun: whatever fails later says where, or how it ended.
func refused(err error) bool {
	_, somewhere := find[*region.Error](err)
	begun := somewhere || is(err, fanout.ErrAborted) || is(err, wal.ErrClosed)
	return !begun && !is(err, context.DeadlineExceeded) && !is(err, context.Canceled)
}

func conflicting(err error) bool {
	_, held := find[*fanout.HeldError](err)
	_, changed := find[*fanout.ConflictError](err)
	_, occupied := find[*fanout.OccupiedError](err)
	_, blocked := find[*fanout.BlockedError](err)
	return held || changed || occupied || blocked
}

// adoption names the command that puts under the protocol what holds a name
// without a claim.
func (s *session) adoption(err error) string {
	held, ok := find[*fanout.HeldError](err)
	if !ok || held.Operation != "" {
		return ""
	}
	for _, kind := range kinds() {
		if kind.GroupKind() == held.Kind {
			return fmt.Sprintf("adopt it as it stands there: %q; or delete it there, or choose another name", s.program+" "+adoptLine(subject{kind, held.Key}, held.Holder))
		}
	}
	return ""
}

// input says whether err comes from what the user gave, and the remedy.
func (s *session) input(err error) (remedy string, ok bool) {
	if noSuchType(err) {
		return fmt.Sprintf("run %q", s.program+" install-crds"), true
	}
	if status, ok := find[*apierrors.StatusError](err); ok {
		switch {
		case apierrors.IsForbidden(status) && s.shared != "" && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "operations":
			return fmt.Sprintf("grant the user of the central plane what %q prints", s.program+" rbac --central"), true
		case apierrors.IsForbidden(status):
			return fmt.Sprintf("grant the peer's user what %q prints", s.program+" rbac"), true
		case apierrors.IsUnauthorized(status):
			return "the peer does not accept the kubeconfig's credentials: renew them", true
		case apierrors.IsInvalid(status), apierrors.IsBadRequest(status):
			return "correct the object", true
		}
	}
	_, field := find[*region.FieldError](err)
	_, locked := find[*wal.LockedError](err)
	_, newer := find[*wal.SchemaError](err)
	_, damaged := find[*wal.CorruptError](err)
	_, value := find[*wal.FieldError](err)
	switch {
	case is(err, fanout.ErrNoOwner), noSuchNamespace(err):
		return fmt.Sprintf("add the Account first: %q", s.program+" account add -f FILE"), true
	case is(err, region.ErrSameCluster):
		return "name each cluster once", true
	case is(err, fanout.ErrOtherLog):
		return "use the log of this ring with --wal, or name the peers of the ring that the log is of", true
	case is(err, fanout.ErrWrongPeer):
		return "correct the kubeconfig of that peer, or its name: each cluster is named once, as its PeerSet calls it", true
	case is(err, fanout.ErrMembership):
		return fmt.Sprintf("name all peers that the PeerSets list; in a new ring run %q once", s.program+" peer init"), true
	case is(err, region.ErrUnknownPeer):
		return "known peers: " + s.peers.names(), true
	case is(err, syscall.ENOSPC), is(err, syscall.EDQUOT):
		return "make room, or use another --wal", true
	case is(err, syscall.EROFS), is(err, fs.ErrPermission):
		return "use a --wal that can be written", true
	case field, locked, newer, damaged, value:
		return "", true
	}
	return "", false
}

// noSuchNamespace says that err is a peer's answer to the creation of an object
// in a namespace that is not there.
func noSuchNamespace(err error) bool {
	status, ok := find[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(status) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}

// find is errors.AsType that looks into a *region.PartialError too.
func find[T error](err error) (T, bool) {
	if found, ok := errors.AsType[T](err); ok {
		return found, true
	}
	for member := range members(err) {
		if found, ok := find[T](member); ok {
			return found, true
		}
	}
	var none T
	return none, false
}

// is is errors.Is that looks into a *region.PartialError too.
func is(err, target error) bool {
	if errors.Is(err, target) {
		return true
	}
	for member := range members(err) {
		if is(member, target) {
			return true
		}
	}
	return false
}

// members yields the members of the PartialErrors in err's tree.
func members(err error) func(yield func(error) bool) {
	return func(yield func(error) bool) {
		partial, ok := errors.AsType[*region.PartialError](err)
		if !ok {
			return
		}
		for _, member := range partial.WrappedErrors() {
			if !yield(member) {
				return
			}
		}
	}
}

// oneLine keeps messages of API servers to a line of a table.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
