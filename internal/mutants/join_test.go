// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

var joinMutants = []mutant{
	{
		"a token is used once", "another request may use it too",
		"judge.go", "	case t.usedBy != \"\" && t.usedBy != r.UID:", "	case t.usedBy != \"\" && t.usedBy == \"-\":", "TestJudge",
	},
	{
		"a token is marked before its request is approved", "the mark is left out",
		"judge.go", "		return verdict{action: spend, target: t.target}\n", "		return verdict{approve, t.target, reasonJoined, \"\"}\n", "TestJudge",
	},
	{
		"a token expires", "its time is ignored",
		"judge.go", "	case !o.now.Before(t.expires):", "	case o.now.IsZero():", "TestJudge",
	},
	{
		"a token of an earlier ServiceAccount of the name is unknown", "UIDs are not compared",
		"judge.go", "	case t == nil || string(t.uid) != r.Spec.UID:", "	case t == nil:", "TestJudge",
	},
	{
		"a cluster gets no certificate of another cluster", "the user is not compared",
		"request.go", "	if csr.Subject.CommonName != User(target) {", "	if csr.Subject.CommonName == \"\" {", "TestJudge|TestCheckIsExact",
	},
	{
		"a certificate has the group of clusters only", "further groups are accepted",
		"request.go", "	if !slices.Equal(csr.Subject.Organization, []string{Group}) {", "	if !slices.Contains(csr.Subject.Organization, Group) {", "TestCheckIsExact",
	},
	{
		"a certificate has no alternative names", "they are accepted",
		"request.go", "	if len(csr.DNSNames)+len(csr.EmailAddresses)+len(csr.IPAddresses)+len(csr.URIs) > 0 {", "	if len(csr.DNSNames) > 99 {", "TestCheckIsExact",
	},
	{
		"a certificate has no extensions", "they are accepted",
		"request.go", "	if len(csr.Extensions) > 0 {", "	if len(csr.Extensions) > 99 {", "TestCheckIsExact",
	},
	{
		"a certificate is for clients only", "further usages are accepted",
		"request.go", "	if !slices.Equal(usages, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}) {", "	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {", "TestCheckIsExact",
	},
	{
		"a certificate is short", "any lifetime is accepted",
		"request.go", "lifetime < shortest || lifetime > longest {", "lifetime < shortest {", "TestCheckIsExact",
	},
	{
		"the requester has the key", "the signature is not checked",
		"request.go", "	if err := csr.CheckSignature(); err != nil {", "	if err := csr.CheckSignature(); err != nil && len(rest) > 0 {", "TestCheckIsExact",
	},
	{
		"a user whose name looks like that of a cluster is left alone", "the group is not compared",
		"judge.go", "	if !ok || !slices.Contains(r.Spec.Groups, Group) {", "	if !ok && slices.Contains(r.Spec.Groups, Group) {", "TestJudge",
	},
	{
		"a cluster whose SyncTarget is gone gets no further certificate", "it does",
		"judge.go", "	if !o.present(target) {\n		return refuse(target,", "	if o.present == nil {\n		return refuse(target,", "TestJudge",
	},
	{
		"a request that was decided is left alone", "it is judged again",
		"judge.go", "	if isDecided(r) || r.Spec", "	if r.Spec", "TestJudge",
	},
	{
		"a crash while a request is under way costs no token", "the key is not kept",
		"store.go", "	return p, atomicfile.Replace(r.pendingFile(), text)", "	return p, atomicfile.Replace(r.pendingFile()+\".x\", text)", "TestACrashCostsNoToken",
	},
	{
		"a token that was denied is not tried again", "it is",
		"obtain.go", "			r.refused = digest(with)\n", "			r.refused = \"\"\n", "TestADeniedTokenIsNotTriedAgain",
	},
	{
		"the certificate in the file is that of this cluster", "any is taken",
		"store.go", "	if err != nil || leaf.Subject.CommonName != User(r.opts.Target) {", "	if err != nil {", "TestWithoutATokenThereIsNoWay",
	},
	{
		"a certificate is renewed with itself", "with the token",
		"obtain.go", "		with = s.file\n", "		with = s.token\n", "TestAClusterJoinsOnceAndThenRenews",
	},
}
