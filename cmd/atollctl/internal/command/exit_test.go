// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	at := func(err error) error { return &region.Error{Peer: "eu", Op: "create", Err: err} }
	aborted := func(err error) error { return fmt.Errorf("add: %w: %w", fanout.ErrAborted, err) }
	clusters := schema.GroupResource{Group: "kubecarrier.io", Resource: "serviceclusters"}
	for name, test := range map[string]struct {
		err    error
		code   int
		remedy string // a part of the remedy
	}{
		"aborted":                 {aborted(at(region.ErrUnavailable)), exitFailed, ""},
		"ended":                   {fmt.Errorf("add: %w", fanout.ErrEnded), exitFailed, ""},
		"ended for want of right": {fmt.Errorf("add: %w: %w", fanout.ErrEnded, at(apierrors.NewForbidden(clusters, "db", nil))), exitFailed, ""},
		"nothing to remove":       {fanout.ErrNotFound, exitFailed, ""},
		"out of time":             {context.DeadlineExceeded, exitFailed, ""},
		"the log is closed":       {wal.ErrClosed, exitFailed, ""},
		"a check of the request":  {errors.New("object is odd"), exitInput, ""},
		"forbidden":               {aborted(at(apierrors.NewForbidden(clusters, "db", nil))), exitInput, "atollctl rbac"},
		"unauthorized":            {at(apierrors.NewUnauthorized("no")), exitInput, "renew them"},
		"invalid":                 {aborted(at(apierrors.NewInvalid(schema.GroupKind{Kind: "Account"}, "acme", nil))), exitInput, "correct the object"},
		"no such type":            {at(apierrors.NewGenericServerResponse(404, "GET", clusters, "db", "", 0, true)), exitInput, "install-crds"},
		"no account":              {aborted(fanout.ErrNoOwner), exitInput, "account add"},
		"no namespace":            {aborted(at(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "acme"))), exitInput, "account add"},
		"membership":              {aborted(fanout.ErrMembership), exitInput, "peer init"},
		"one cluster twice":       {region.ErrSameCluster, exitInput, "name each cluster once"},
		"unknown peer":            {at(region.ErrUnknownPeer), exitInput, "known peers"},
		"kubeconfig":              {&region.FieldError{Field: "users[0].user.exec"}, exitInput, ""},
		"full disk":               {fmt.Errorf("write-ahead log: %w", &wal.InDoubtError{Err: syscall.ENOSPC}), exitInput, "make room"},
		"read-only file system":   {fmt.Errorf("open: %w", syscall.EROFS), exitInput, "can be written"},
		"no permission":           {fmt.Errorf("open: %w", fs.ErrPermission), exitInput, "can be written"},
		"locked log":              {&wal.LockedError{}, exitInput, ""},
		"newer log":               {&wal.SchemaError{}, exitInput, ""},
		"damaged log":             {&wal.CorruptError{}, exitInput, ""},
		"held":                    {&fanout.HeldError{Holder: "eu"}, exitConflict, ""},
		"changed":                 {&fanout.ConflictError{}, exitConflict, ""},
		"in use":                  {&fanout.OccupiedError{}, exitConflict, ""},
		"waits for what is in it": {&fanout.OccupiedError{Committed: true}, exitDoubt, "atollctl wal recover"},
		"in doubt, and occupied":  {&fanout.InDoubtError{Operation: "o", Err: &fanout.OccupiedError{}}, exitDoubt, "remove those"},
		"in doubt":                {&fanout.InDoubtError{Operation: "o", Err: at(apierrors.NewForbidden(clusters, "db", nil))}, exitDoubt, "atollctl wal recover"},
		"a known problem":         {fmt.Errorf("audit: %w", &problem{code: exitViolations, remedy: "mend", err: errors.New("bad")}), exitViolations, "mend"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &session{program: "atollctl", started: true}
			code, remedy := s.classify(t.Context(), test.err)
			require.Equal(t, test.code, code)
			require.Contains(t, remedy, test.remedy)
		})
	}
}

// classify checks the members of a PartialError one by one, since errors.Is and errors.As do not
// search them.
func TestClassifyPartial(t *testing.T) {
	t.Parallel()
	forbidden := &region.Error{Peer: "eu", Op: "list", Err: apierrors.NewForbidden(schema.GroupResource{Resource: "accounts"}, "", nil)}
	s := &session{program: "atollctl", started: true}
	refused := region.ResultsOf("list", region.Outcome[int]{Peer: "eu", Err: forbidden}, region.Outcome[int]{Peer: "us"})
	code, remedy := s.classify(t.Context(), s.unread(refused.Err()))
	require.Equal(t, exitInput, code)
	require.Contains(t, remedy, "atollctl rbac")

	silent := region.ResultsOf("list", region.Outcome[int]{Peer: "eu", Err: forbidden}, region.Outcome[int]{Peer: "us", Err: &region.Error{Peer: "us", Op: "list", Err: region.ErrUnavailable}})
	code, _ = s.classify(t.Context(), s.unread(silent.Err()))
	require.Equal(t, exitDoubt, code, "a peer that does not answer leaves doubt, whatever the others say")
	require.NoError(t, s.unread(nil))

	away := region.ResultsOf("read", region.Outcome[int]{Peer: "us", Err: &region.Error{Peer: "us", Op: "read", Err: region.ErrUnavailable}}).Err()
	joined := fmt.Errorf("audit: %w", errors.Join(away, fmt.Errorf("kinds: %w", refused.Err())))
	require.True(t, is(joined, region.ErrUnavailable))
	status, ok := find[*apierrors.StatusError](joined)
	require.True(t, ok, "the members of each PartialError are searched")
	require.True(t, apierrors.IsForbidden(status))
}
