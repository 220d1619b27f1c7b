CREATE TABLE shop_order (number bigint PRIMARY KEY)
