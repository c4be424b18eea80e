// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/region"
)

// The checks of peers --check, in the order in which they are printed.
const (
	checkReach    = "Reachable"
	checkIdentity = "Identity"
	checkRights   = "Rights"
	checkTypes    = "Types"
	checkVersion  = "Version"
	checkClock    = "Clock"
	checkExpiry   = "Expiry"
	checkPeerSet  = "PeerSet"
)

// status is the result of a check.
type status string

const (
	statusOK      status = "OK"
	statusWarning status = "Warning" // it works now
	statusFailed  status = "Failed"
	statusUnknown status = "Unknown" // the check could not be made
)

// finding is a result of one check of one peer.
type finding struct {
	peer, check string
	status      status
	code        int    // exit code, if the status is Failed or Unknown
	detail      string // never contains a secret
	remedy      string // a command line, or a sentence if no command helps; empty if nothing is to be done
}

func passed(check, format string, args ...any) finding {
	return finding{check: check, status: statusOK, detail: fmt.Sprintf(format, args...)}
}

func warned(check, remedy, format string, args ...any) finding {
	return finding{check: check, status: statusWarning, remedy: remedy, detail: fmt.Sprintf(format, args...)}
}

func failed(check, remedy, format string, args ...any) finding {
	return finding{check: check, status: statusFailed, code: exitInput, remedy: remedy, detail: fmt.Sprintf(format, args...)}
}

// unknown is the finding of a check whose request failed with err.
func unknown(check string, err error) finding {
	cause := region.CauseOf(err)
	return finding{check: check, status: statusUnknown, code: codeOf(err), remedy: cause.Remedy(), detail: withoutRemedy(err)}
}

// codeOf returns exitInput if the user can correct the cause of a failed request, otherwise
// exitDoubt, since the peer could not be read.
func codeOf(err error) int {
	if answer, ok := find[*apierrors.StatusError](err); ok && (apierrors.IsUnauthorized(answer) || apierrors.IsForbidden(answer)) {
		return exitInput
	}
	return exitDoubt
}

// withoutRemedy returns the cause and the text of err on one line.
func withoutRemedy(err error) string {
	cause := region.CauseOf(err)
	if cause == region.CauseUnknown {
		return oneLine(err)
	}
	if d, ok := find[*region.Diagnosis](err); ok {
		err = d.Err
	}
	return oneLine(&region.Diagnosis{Cause: cause, Err: err})
}

func (f finding) item() item {
	return item{
		cells: []any{f.peer, f.check, string(f.status), or(f.detail), or(f.remedy)},
		object: object("Check", f.peer+"."+strings.ToLower(f.check), map[string]any{
			"peer": f.peer, "check": f.check, "status": string(f.status), "detail": f.detail, "remedy": f.remedy,
		}),
	}
}

// verdict returns nil if no check failed. Otherwise it returns an error that names each failed check
// once, with its peers, and each remedy once. Its exit code is the lowest of the findings, because
// an unreachable peer does not hide a mistake that the user can correct.
func verdict(findings []finding) error {
	code := 0
	var remedies, checks []string
	peers := map[string][]string{}
	for _, f := range findings {
		if f.code == exitDone {
			continue
		}
		if code == exitDone || f.code < code {
			code = f.code
		}
		if !slices.Contains(checks, f.check) {
			checks = append(checks, f.check)
		}
		if !slices.Contains(peers[f.check], f.peer) {
			peers[f.check] = append(peers[f.check], f.peer)
		}
		if f.remedy != "" && !slices.Contains(remedies, f.remedy) {
			remedies = append(remedies, f.remedy)
		}
	}
	if code == exitDone {
		return nil
	}
	for i, check := range checks {
		checks[i] = fmt.Sprintf("%s of %s", check, strings.Join(peers[check], ", "))
	}
	return &problem{code: code, remedy: strings.Join(remedies, "; "), err: fmt.Errorf("checks failed: %s", strings.Join(checks, "; "))}
}
