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

// problem is an error with its exit code and remedy.
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

// classify returns the exit code of err and a remedy for the user.
func (s *session) classify(ctx context.Context, err error) (code int, remedy string) {
	if p, ok := find[*problem](err); ok {
		return p.code, p.remedy
	}
	if !s.started { // cobra rejected the command line
		return exitInput, "see " + s.program + " --help"
	}
	if code, remedy, ok := s.outcome(err); ok {
		return code, remedy
	}
	remedy, input := s.input(err)
	if !input || noSuchType(err) || is(err, fanout.ErrMembership) && !is(err, fanout.ErrWrongPeer) {
		if lack, ok := s.lacking(ctx); ok { // which peer lacks which type
			return exitInput, lack
		}
	}
	if input || refused(err) {
		return exitInput, remedy
	}
	return exitFailed, ""
}

// outcome returns the exit code and the remedy for an error that reports how an operation ended, or
// which operation or object blocks the operation. For any other error, ok is false.
func (s *session) outcome(err error) (code int, remedy string, ok bool) {
	removal := fmt.Sprintf("remove those, then run %q with the same --wal", s.program+" wal recover")
	if doubt, ok := find[*fanout.InDoubtError](err); ok {
		if _, occupied := find[*fanout.OccupiedError](doubt); occupied {
			return exitDoubt, removal, true
		}
		again := fmt.Sprintf("do not start it anew: run %q with the same --wal once the peers answer", s.program+" wal recover")
		return exitDoubt, again, true
	}
	if foreign, ok := find[*fanout.ForeignError](err); ok {
		abort := fmt.Sprintf("%s operation abort %s --others", s.program, foreign.Operation)
		return exitConflict, fmt.Sprintf("if that coordinator is gone: %q", abort), true
	}
	occupied, _ := find[*fanout.OccupiedError](err)
	switch {
	case is(err, fanout.ErrCommitted):
		return exitConflict, "remove the object if it is not wanted", true
	case is(err, fanout.ErrUnknownOperation) && is(err, region.ErrUnavailable):
		return exitDoubt, "ask again once the peers answer", true
	case is(err, fanout.ErrUnknownOperation):
		return exitFailed, fmt.Sprintf("list the open operations: %q", s.program+" operation list --peers"), true
	case is(err, fanout.ErrEnded), is(err, fanout.ErrNotFound), is(err, fanout.ErrNotHeld):
		return exitFailed, "", true
	case occupied != nil && occupied.Committed:
		return exitDoubt, removal, true
	case conflicting(err):
		return exitConflict, s.adoption(err), true
	}
	return 0, "", false
}

// refused reports whether a check of the request returned err before the operation began. An error
// of a later step names a peer or an outcome, or shows that the log was closed or that the time was
// over.
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

// adoption returns a remedy if err names an object without a claim that holds the name: adopt that
// object, delete it, or choose another name. Otherwise adoption returns "", also for several such
// objects: the error has their remedy.
func (s *session) adoption(err error) string {
	held, ok := find[*fanout.HeldError](err)
	if !ok || held.Operation != "" || len(held.Rivals()) > 0 {
		return ""
	}
	for _, kind := range kinds() {
		if kind.GroupKind() == held.Kind {
			return fmt.Sprintf("adopt it unchanged: %q; or delete it there, or choose another name", s.program+" "+adoptLine(subject{kind, held.Key}, held.Holder))
		}
	}
	return ""
}

// input reports whether the user can correct the cause of err, such as a flag, a file or a right.
// It also returns the remedy, which may be empty.
func (s *session) input(err error) (remedy string, ok bool) {
	if noSuchType(err) {
		return fmt.Sprintf("run %q", s.program+" install-crds"), true
	}
	if remedy, ok := s.answer(err); ok {
		return remedy, true
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
		return "use the log of this ring with --wal, or name the peers of the log's ring", true
	case is(err, fanout.ErrWrongPeer):
		return "correct the kubeconfig of the peer, or its name: name each cluster once, by the name in its PeerSet", true
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

// answer is the part of input that classifies the responses of API servers.
func (s *session) answer(err error) (remedy string, ok bool) {
	status, ok := find[*apierrors.StatusError](err)
	if !ok {
		return "", false
	}
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
	return "", false
}

// noSuchNamespace reports whether err is a peer's response to the creation of an object in a
// missing namespace.
func noSuchNamespace(err error) bool {
	status, ok := find[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(status) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}

// find calls errors.AsType for err. If that fails, it calls itself for each member of the
// *region.PartialErrors in err.
func find[T error](err error) (T, bool) {
	if found, ok := errors.AsType[T](err); ok {
		return found, true
	}
	for _, member := range members(err) {
		if found, ok := find[T](member); ok {
			return found, true
		}
	}
	var none T
	return none, false
}

// is calls errors.Is for err. If that returns false, it calls itself for each member of the
// *region.PartialErrors in err.
func is(err, target error) bool {
	if errors.Is(err, target) {
		return true
	}
	for _, member := range members(err) {
		if is(member, target) {
			return true
		}
	}
	return false
}

// members returns the members of all PartialErrors in err's tree.
func members(err error) []error {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *region.PartialError:
		return e.WrappedErrors()
	case interface{ Unwrap() error }:
		return members(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []error
		for _, child := range e.Unwrap() {
			all = append(all, members(child)...)
		}
		return all
	}
	return nil
}

// oneLine returns the message of err on one line, for example for a cell of a table.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
