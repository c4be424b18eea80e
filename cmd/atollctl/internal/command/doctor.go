// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/spf13/cobra"
)

const checkHelp = `Each finding is a row with a check, a status and a remedy, which is a command line where
a command helps. The checks are:

  Reachable  the API server answers, and accepts the credentials
  Identity   the cluster is the one that the ring knows under the peer's name
  Rights     the user has the rights that "rbac" prints
  Types      the types of Atoll are installed, and have the schemas of this release
  Version    the API server is of a supported version
  Clock      the API server's clock is within 5 s of the clock here
  Expiry     certificates and tokens that expire soon, or have expired
  PeerSet    the members are the configured peers, and no change of them is stuck

Of a peer that is not reachable, only Reachable and Expiry are checked. If a change of the
members is under way, the command waits for a lease (15 s) to see whether it is stuck. The
exit code is 0 if each status is OK or Warning. Otherwise it is 2 if the user can correct
something, 3 if other software installed a type, and 4 if a peer could not be read or a
change is stuck; the lowest of them if several apply.`

func (s *session) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check each peer, and show faults and remedies, as peers --check does",
		Long:  "Check everything that commands need of each peer, and change nothing.\n" + checkHelp,
		Args:  cobra.NoArgs,
		RunE:  s.run(func(ctx context.Context, _ []string) error { return s.check(ctx) }),
	}
}

// check checks all peers and prints the findings.
func (s *session) check(ctx context.Context) error {
	d, err := s.connect(ctx)
	if err != nil {
		return err
	}
	checkups := s.observeAll(ctx, d)
	s.awaitChanges(ctx, d, checkups)
	findings := judgeAll(checkups, s.commands(), s.now())
	l := listing{columns: []string{"Peer", "Check", "Status", "Detail", "Remedy"}}
	for _, f := range findings {
		l.items = append(l.items, f.item())
	}
	if err := s.print(l); err != nil {
		return err
	}
	return verdict(findings)
}
