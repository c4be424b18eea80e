// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// attemptMutants break the rules that prevent a wrong result of an operation or a rejoin whose peer
// is restored from a backup meanwhile.
var attemptMutants = []broken{
	{rule: "R16 an abort counts as proved only if its peer was not restored meanwhile", want: "I4: x says aborted", cfg: config{
		peers: 2, restored: "a", detected: true, crashes: 1, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskAttest {
				r.PeerSet.Epoch = p.op.Epochs[c.Peer]
			}
			return r
		}},
	}},
	{rule: "R16 a commit that was seen and is forgotten was in effect", want: "I4: x says aborted", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", restored: "a", plans: []plan{update("x", "q"), update("y", "s")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			p.m.Reverted = false
			return cmds
		}},
	}},
	{rule: "R16 a comeback that was cut short before it began is not done", want: "LIE: h", cfg: config{
		peers: 2, committed: "p", restored: "a", detected: true, crashes: 1, changes: changes(returnA),
		mutant: mutant{told: func(_ *world, p *proc, _ Command, r Reply) Reply {
			p.change.m.Record.Epoch = -lifetime
			return r
		}},
	}},
}
