"""navarch as it is run by its users: one of several replicas of an operator with a webhook, whose CA lives for a minute."""

import os
from datetime import timedelta

from navarch import Operator, Review, WebhookServer
from navarch.k8s.core.v1 import ConfigMap
from navarch.webhook import Certificates

lifetime = timedelta(seconds=float(os.environ["BENCH_CA_SECONDS"]))
operator = Operator(
    "bench",
    endpoints=None,
    webhook_server=WebhookServer(
        listen=f"127.0.0.1:{os.environ['BENCH_PORT']}",
        url=os.environ["BENCH_URL"],
        certificates=Certificates(lifetime=lifetime / 2, ca_lifetime=lifetime, propagation=lifetime / 12),
    ),
)


@operator.validate(ConfigMap, labels="guarded")
async def check(config: ConfigMap, review: Review[ConfigMap]) -> None:
    if config.labels["guarded"] == "bad":
        review.deny("metadata.labels[guarded]", "must not be bad")


operator.run()
