"""The service: a web page and an API over models, with batching, limits and figures to watch."""
