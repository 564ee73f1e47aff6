"""The table of secrets that masking knows by their shape: each row is a label, literal hints and one pattern. No code beyond that.

A row runs only where one of its hints is in the text, and each pattern begins with a literal or is anchored to the start of a run of
its own characters, so that the whole table is linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern`'s group `s` (or the whole match) is the secret. `hints`: lower-case literals, one of which is in every match."""

    label: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _prefixed(label: str, prefixes: str, tail: str, *, flags: int = 0, edge: str = "A-Za-z0-9_") -> Rule:
    """A token that starts with one of `prefixes` (space separated) and goes on with the pattern `tail`."""
    names = prefixes.split()
    body = "|".join(re.escape(p) for p in names)
    # The edge keeps `task-...` from being read as `sk-...`, and one run from being tried at each of its characters.
    return Rule(label, tuple(p.lower() for p in names), re.compile(rf"(?<![{edge}])(?:{body}){tail}", flags))


_W = "[A-Za-z0-9_-]"  # base64url
_A = "[A-Za-z0-9]"
_H = "[a-f0-9]"
_Q = "[A-Za-z0-9_~.-]"

RULES: tuple[Rule, ...] = (
    _prefixed("anthropic-key", "sk-ant-", rf"{_W}{{20,}}"),
    # Also OpenRouter (sk-or-v1-), DeepSeek, Moonshot and others that took OpenAI's form. A digit keeps CSS classes out.
    _prefixed("openai-key", "sk-", rf"(?=[a-zA-Z_-]{{0,48}}\d){_W}{{20,}}"),
    _prefixed("openai-session", "sess-", rf"{_A}{{36,}}"),
    _prefixed("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_A}{{30,}}"),
    _prefixed("github-token", "github_pat_", r"[A-Za-z0-9_]{40,}"),
    _prefixed("gitlab-token", "glpat- glptt- gldt- glrt- glcbt- glft- glsoat- glimt- glagent- gloas- glffct-", r"[A-Za-z0-9_.-]{18,}"),
    _prefixed("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- xoxe.xoxp- xoxe.xoxb-", r"[A-Za-z0-9%-]{10,}"),
    Rule("slack-webhook", ("hooks.slack.com/",), re.compile(r"hooks\.slack\.com/[a-z]{8,9}/(?P<s>[A-Za-z0-9/_-]{20,})")),
    Rule("discord-webhook", ("/api/webhooks/",), re.compile(r"/api/webhooks/\d{15,}/(?P<s>[A-Za-z0-9_-]{40,})")),
    Rule("teams-webhook", (".webhook.office.com/",), re.compile(r"\.webhook\.office\.com/(?P<s>[A-Za-z0-9/@_-]{60,})")),
    _prefixed("aws-access-key", "AKIA ASIA ABIA ACCA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _prefixed("aws-bedrock-key", "ABSK", r"[A-Za-z0-9+/]{100,}={0,2}"),
    _prefixed("google-api-key", "AIza", rf"{_W}{{35}}(?![A-Za-z0-9_-])"),
    _prefixed("google-oauth-token", "ya29.", r"[A-Za-z0-9_.-]{20,}"),
    _prefixed("google-oauth-secret", "GOCSPX-", rf"{_W}{{20,}}"),
    _prefixed("google-refresh-token", "1//0", rf"{_W}{{35,}}"),
    _prefixed("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", rf"{_A}{{16,}}"),
    _prefixed("webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{20,}"),
    # Header and claims both begin with the base64 of `{"`; the signature may be empty (alg none).
    Rule("jwt", ("eyj",), re.compile(rf"(?<![A-Za-z0-9_-])eyJ{_W}{{8,}}\.eyJ{_W}{{8,}}(?:\.{_W}*)?")),
    Rule("jwe", ("eyj",), re.compile(rf"(?<![A-Za-z0-9_-])eyJ{_W}{{15,}}\.{_W}*\.{_W}{{12,}}\.{_W}{{12,}}\.{_W}{{16,}}")),
    _prefixed("npm-token", "npm_", rf"{_A}{{36}}(?!{_A})"),
    _prefixed("pypi-token", "pypi-", rf"{_W}{{50,}}"),
    _prefixed("huggingface-token", "hf_ api_org_", rf"{_A}{{30,}}"),
    _prefixed("rubygems-key", "rubygems_", rf"{_H}{{48}}"),
    _prefixed("crates-token", "cio", rf"{_A}{{32}}(?!{_A})"),
    _prefixed("docker-token", "dckr_pat_ dckr_oat_", rf"{_W}{{20,}}"),
    Rule("telegram-token", (":aa",), re.compile(rf"(?<![A-Za-z0-9_-])(?:bot)?(?P<s>\d{{8,10}}:AA{_W}{{33}})(?![A-Za-z0-9_-])")),
    Rule("discord-token", (".",), re.compile(rf"(?<![A-Za-z0-9_.-])[MNO]{_W}{{23,27}}\.{_W}{{6}}\.{_W}{{27,40}}(?!{_W})")),
    Rule("azure-secret", ("7q~", "8q~", "9q~"), re.compile(rf"(?<!{_Q})[A-Za-z0-9_~.]{{3}}[789]Q~{_Q}{{31,40}}")),
    # 64 bytes in base64: Azure storage, Cosmos and batch keys. A preceding `sha512-` is a lock file's checksum.
    Rule("azure-key", ("==",), re.compile(r"(?<![A-Za-z0-9+/-])[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])")),
    Rule("azure-devops-token", ("azdo",), re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])")),
    Rule("signed-url", ("sig=", "signature="), re.compile(r"[?&;](?:X-(?:Amz|Goog)-)?sig(?:nature)?=(?P<s>[A-Za-z0-9%+/=_-]{20,})", re.I)),
    Rule("aws-session-token", ("x-amz-security-token=",), re.compile(r"X-Amz-Security-Token=(?P<s>[A-Za-z0-9%+/=_-]{20,})", re.I)),
    _prefixed("sendgrid-key", "SG.", rf"{_W}{{16,32}}\.{_W}{{16,64}}"),
    _prefixed("mailgun-key", "key-", rf"{_H}{{32}}(?!{_A})"),
    Rule("mailchimp-key", ("-us",), re.compile(rf"(?<![A-Za-z0-9]){_H}{{32}}-us\d{{1,2}}(?!\d)")),
    Rule("twilio-key", ("sk",), re.compile(rf"(?<![A-Za-z0-9_])SK{_H}{{32}}(?![A-Za-z0-9])")),
    _prefixed("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", rf"{_H}{{64}}"),
    _prefixed("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"[A-Fa-f0-9]{32}"),
    _prefixed("databricks-token", "dapi", rf"{_H}{{32}}(?:-\d)?(?!{_A})"),
    _prefixed("linear-key", "lin_api_ lin_oauth_", rf"{_A}{{32,}}"),
    _prefixed("notion-token", "ntn_", rf"{_A}{{40,}}"),
    _prefixed("notion-token", "secret_", rf"{_A}{{43}}(?!{_A})"),
    _prefixed("vault-token", "hvs. hvb. hvr.", rf"{_W}{{24,}}"),
    _prefixed("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{30,}"),
    _prefixed("groq-key", "gsk_", rf"{_A}{{40,}}"),
    _prefixed("xai-key", "xai-", rf"{_A}{{60,}}"),
    _prefixed("replicate-token", "r8_", rf"{_A}{{30,}}"),
    _prefixed("perplexity-key", "pplx-", rf"{_A}{{40,}}"),
    _prefixed("tavily-key", "tvly-", rf"{_W}{{20,}}"),
    _prefixed("langsmith-key", "lsv2_pt_ lsv2_sk_ ls__", r"[a-z0-9_]{30,}"),
    _prefixed("nvidia-key", "nvapi-", rf"{_W}{{40,}}"),
    _prefixed("elevenlabs-key", "sk_", rf"{_H}{{40,}}(?!{_A})"),
    _prefixed("pinecone-key", "pcsk_", r"[A-Za-z0-9_]{40,}"),
    _prefixed("firecrawl-key", "fc-", rf"{_H}{{32}}(?!{_A})"),
    _prefixed("supabase-key", "sbp_ sb_secret_", r"[A-Za-z0-9_-]{30,}"),
    _prefixed("netlify-token", "nfp_", rf"{_A}{{36,}}"),
    _prefixed("fly-token", "fm1r_ fm1a_ fm2_ fo1_", r"[A-Za-z0-9+/=_-]{40,}"),
    _prefixed("render-key", "rnd_", rf"{_A}{{28,}}"),
    _prefixed("grafana-token", "glsa_ glc_", r"[A-Za-z0-9+/=_]{32,}"),
    _prefixed("sentry-token", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_-]{40,}"),
    _prefixed("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    _prefixed("figma-token", "figd_ figoh_ figor_", rf"{_W}{{36,}}"),
    _prefixed("atlassian-token", "ATATT3 ATCTT3 ATBB ATSTT3", r"[A-Za-z0-9_=-]{20,}"),
    _prefixed("square-token", "sq0atp- sq0csp- sq0idp-", rf"{_W}{{22,}}"),
    _prefixed("square-token", "EAAAE EAAAl", rf"{_W}{{50,}}"),
    _prefixed("facebook-token", "EAAC EAAG EAAB EAAM EAAD", rf"{_A}{{60,}}"),
    _prefixed("braintree-token", "access_token$production$ access_token$sandbox$", rf"{_A}{{16}}\$[a-f0-9]{{32}}"),
    _prefixed("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{30,}"),
    _prefixed("postman-key", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    _prefixed("newrelic-key", "NRAK- NRJS- NRAA- NRII-", r"[A-Za-z0-9_-]{19,}"),
    Rule("airtable-token", ("pat",), re.compile(r"(?<![A-Za-z0-9_])pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![A-Za-z0-9])")),
    Rule("terraform-token", (".atlasv1.",), re.compile(rf"(?<![A-Za-z0-9_-]){_A}{{14}}\.atlasv1\.{_W}{{60,}}")),
    _prefixed("heroku-key", "HRKU-", rf"{_W}{{30,}}"),
    _prefixed("alibaba-key", "LTAI", rf"{_A}{{12,30}}(?!{_A})"),
    _prefixed("tencent-key", "AKID", rf"{_A}{{32}}(?!{_A})"),
    _prefixed("volcengine-key", "AKLT", rf"{_A}{{40,}}"),
    _prefixed("1password-token", "ops_eyJ", r"[A-Za-z0-9+/_=-]{100,}"),
    _prefixed("dropbox-token", "sl.", rf"(?:u\.)?{_W}{{60,}}"),
    _prefixed("nuget-key", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    _prefixed("artifactory-token", "AKCp cmVmdGtu", rf"{_A}{{40,}}"),
    _prefixed("pulumi-token", "pul-", rf"{_H}{{40}}(?!{_A})"),
    _prefixed("contentful-token", "CFPAT-", rf"{_W}{{43}}"),
    _prefixed("frameio-token", "fio-u-", rf"{_W}{{60,}}"),
    _prefixed("buildkite-token", "bkua_ bkaj_", rf"{_H}{{40}}"),
    _prefixed("circleci-token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{40,}"),
    _prefixed("lark-token", "t-g1 u-", rf"{_A}{{36,}}"),
)
